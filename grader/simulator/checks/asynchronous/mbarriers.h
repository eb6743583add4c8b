// mbarriers and bulk copies: what a phase orders, when copied data may be read, and which ordinary writes the copy
// engine sees.
#pragma once

#include "checks/core/state.h"
#include "runtime/events.h"
#include "runtime/tensor_map.h"

namespace sim::checks {

// A fence.proxy.async: up to which times the thread knew other threads' writes when it executed the fence.
struct ProxyFence {
    uint32_t time;
    uint32_t warp_time;
    uint32_t barrier_time;
    const VectorClock* known;
};

// A bulk store of a thread, until it is known to be complete.
struct BulkStore {
    BulkCopy copy;
    uint32_t group;
    Epoch pending;
    const void* code;
};

// State of a thread that uses bulk stores or fence.proxy.async.
struct BulkState {
    Growable<BulkStore> stores;
    size_t read;                  // number of stores that are known to have read shared memory
    uint32_t group;               // the group being filled
    Growable<ProxyFence> fences;  // oldest first
};

// A bulk copy's read of its source and its write to shared memory. `reads` is false for a value in registers and for a
// further copy of a multicast. The destination is marked as pending with the returned epoch.
Epoch bulk_copy(ThreadState& thread, const BulkCopy& copy, bool reads, const void* code);

// Returns whether a fence.proxy.async makes an ordinary write visible to the bulk copies that the thread starts now.
bool seen_by_bulk_copies(const ThreadState& thread, Epoch write);

// Called after a grid barrier, which waits for no copy: copies in flight remain later than all accesses.
void keep_copies_pending(BlockState& block);
// Does the same for a thread's bulk stores.
void keep_stores_pending(ThreadState& thread);

}  // namespace sim::checks
