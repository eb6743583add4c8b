// mbarriers and bulk copies: what a phase orders, when what copies wrote may be read, and which ordinary writes the copy
// engine sees.
#pragma once

#include "checks/core/state.h"
#include "runtime/events.h"
#include "runtime/tensor_map.h"

namespace sim::checks {

// A fence.proxy.async: what the thread itself, and what it knew of others, had written when it came there.
struct ProxyFence {
    uint32_t time;
    uint32_t warp_time;
    uint32_t barrier_time;
    const VectorClock* known;
};

// A bulk store of a thread, until all of it is known to be done.
struct BulkStore {
    BulkCopy copy;
    uint32_t group;
    Epoch pending;
    const void* code;
};

// Of a thread that uses bulk stores or that fence.
struct BulkState {
    Growable<BulkStore> stores;
    size_t read;                  // so many of them are known to have read shared memory
    uint32_t group;               // the one being filled
    Growable<ProxyFence> fences;  // oldest first
};
void free_bulk_state(BulkState* state);

// Calls visit(cell) for every cell of [address, address + bytes) that the region has.
template <typename F>
void each_cell(Region* region, uintptr_t address, size_t bytes, F visit) {
    if (!region || !region->cells || bytes == 0) return;
    size_t first = (address - region->base) >> region->shift;
    size_t last = (address - region->base + bytes - 1) >> region->shift;
    for (size_t i = first; i <= last && i < region->cell_count(); ++i) visit(region->cells[i]);
}

// The read by a bulk copy (not if that was counted already: of a multicast, or of a value in registers), and its write to
// shared memory, which is marked as pending from now on with the epoch returned.
Epoch bulk_copy(ThreadState& thread, const BulkCopy& copy, bool reads, const void* code);

// Whether a fence.proxy.async stands between an ordinary write and what the thread's bulk copies do now.
bool seen_by_bulk_copies(const ThreadState& thread, Epoch write);

}  // namespace sim::checks
