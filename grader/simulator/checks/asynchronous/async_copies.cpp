// Asynchronous copies: which accesses to their source and destination are allowed, and when they are complete.
#include "checks/core/access.h"
#include "checks/counting/counting.h"
#include "checks/report/findings.h"
#include "checks/asynchronous/mbarriers.h"
#include "checks/synchronization/reader_set.h"
#include "checks/synchronization/races.h"
#include "checks/report/recording.h"
#include "checks/asynchronous/swizzles.h"
#include "checks/counting/touched_sectors.h"
#include "runtime/async_operations.h"
#include "runtime/events.h"

namespace sim::checks {

namespace {

// Log2 of bytes: cp.async copies up to 16 bytes per thread; the copy engine moves whole 32-byte sectors of global
// memory.
constexpr unsigned lane_piece = 4, engine_piece = 5;

// Prepares the site for an access by the copy engine. The access is not logged, because it belongs to no warp's
// request.
AccessSite* access_piece(ThreadState& state, uintptr_t address, Access access, unsigned size_log2, const void* code) {
    if (state.pending) settle(state, address, code);
    return prepare(state, state.worker->sites.find(code), address, access, size_log2);
}

// The copy engine's accesses to global memory for one instruction. Calls visit(site, address, log2 of the size) for the
// pieces of the box inside the tensor. The instruction counts as one request with the sectors that its rows touch.
template <typename F>
void access_global(ThreadState& state, const BulkCopy& copy, Access access, const void* code, F visit) {
    AccessSite* counting = nullptr;
    uint64_t bytes = 0, sectors = 0;
    bool in_arena = false;
    each_row(copy, [&](bool inside, uint32_t, const char* row, uint32_t row_bytes) {
        if (!inside) return;
        each_piece(row, row_bytes, engine_piece, [&](uintptr_t address, unsigned size_log2) {
            AccessSite* site = access_piece(state, address, access, size_log2, code);
            if (!site) return;
            if (site->cells) visit(*site, address, size_log2);
            if (counting) return;
            counting = site;
            in_arena = site->origin == reinterpret_cast<uintptr_t>(arena_range().base);
        });
        if (!counting) return;
        uintptr_t first = (reinterpret_cast<uintptr_t>(row) - counting->origin) >> sector_shift;
        uintptr_t last = (reinterpret_cast<uintptr_t>(row) + row_bytes - 1 - counting->origin) >> sector_shift;
        if (in_arena) state.worker->sectors->touch(access != Access::async_read, first, last);
        sectors += last - first + 1;
        bytes += row_bytes;
    });
    if (!counting) return;
    uint64_t ideal = (bytes + (1u << sector_shift) - 1) >> sector_shift;
    ++counting->counters.accesses;
    ++counting->counters.requests;
    counting->counters.bytes += bytes;
    counting->counters.sectors += sectors;
    counting->counters.ideal_sectors += ideal < sectors ? ideal : sectors;
}

void read_source(ThreadState& state, AccessSite& site, uintptr_t from, unsigned size_log2) {
    if (site.guarded)
        read_cells_of_several(state, site, from, size_log2);
    else
        access_cells<false>(state, site, from, size_log2);
}

// The copy may complete at any time before the wait, so no thread may access its destination until then.
void write_destination(ThreadState& state, AccessSite& site, uintptr_t to, unsigned size_log2) {
    Epoch epoch = state.epoch;
    each_cell(site, to, size_log2, [&](ShadowCell& cell) {
        write_cell(state, cell, site, to);
        cell.write = epoch.with_time(Epoch::time_pending);
    });
}

BulkState& bulk_of(ThreadState& thread) {
    ThreadExtras& extras = extras_of(thread);
    if (!extras.bulk) extras.bulk = new BulkState();
    return *extras.bulk;
}

void check_proxy_fence(ThreadState& state, const AccessSite& site, uintptr_t address, unsigned size_log2,
                       bool* missing) {
    each_cell(site, address, size_log2, [&](const ShadowCell& cell) {
        if (*missing || cell.write == never || seen_by_bulk_copies(state, cell.write)) return;
        *missing = true;
        report_missing_proxy_fence(state, site, cell, address);
    });
}

// Records that the copy reads its source in shared memory. No thread may write to the source until the thread has
// waited for the copy.
void read_shared_source(ThreadState& state, const void* from, size_t bytes, Epoch pending, const void* code) {
    bool fence_missing = false;
    each_piece(from, bytes, lane_piece, [&](uintptr_t address, unsigned size_log2) {
        AccessSite* site = access_piece(state, address, Access::async_read, size_log2, code);
        if (!site || !site->cells) return;
        each_cell(*site, address, size_log2, [&](ShadowCell& cell) {
            read_cell(state, cell, *site);
            cell.reads = pending;
            cell.read_site = site->id;
        });
        check_proxy_fence(state, *site, address, size_log2, &fence_missing);
    });
}

void replace_reads(const ThreadState& state, const BulkStore& store, Epoch epoch) {
    uintptr_t shared = reinterpret_cast<uintptr_t>(store.copy.shared);
    each_cell(find_shared(*state.block, shared), shared, store.copy.bytes(),
              [&](ShadowCell& cell) { replace_pending(cell, store.pending, epoch); });
}

void replace_writes(const BulkStore& store, Epoch epoch) {
    bool reduces = store.copy.reduction != Reduction::none;
    each_row(store.copy, [&](bool inside, uint32_t, const char* row, uint32_t bytes) {
        if (!inside) return;
        uintptr_t global = reinterpret_cast<uintptr_t>(row);
        each_cell(find_region(global), global, bytes, [&](ShadowCell& cell) {
            if (reduces)
                replace_pending(cell, store.pending, epoch);
            else if (cell.write == store.pending)
                cell.write = epoch.pending() ? epoch : epoch.with_atomic(true);
        });
    });
}

}  // namespace

void keep_stores_pending(ThreadState& state) {
    BulkState* bulk = state.extras ? state.extras->bulk : nullptr;
    if (!bulk) return;
    const Epoch pending = state.epoch.with_time(Epoch::time_pending);
    for (size_t i = 0; i < bulk->stores.size(); ++i) {
        BulkStore& store = bulk->stores[i];
        if (i >= bulk->read) replace_reads(state, store, pending);
        replace_writes(store, pending);
        store.pending = pending;
    }
}

Epoch bulk_copy(ThreadState& state, const BulkCopy& copy, bool reads, const void* code) {
    const char* from = copy.map.address;
    if (reads && in_shared(*state.block, reinterpret_cast<uintptr_t>(from))) {
        bool fence_missing = false;
        each_piece(from, copy.bytes(), lane_piece, [&](uintptr_t address, unsigned size_log2) {
            AccessSite* site = access_piece(state, address, Access::async_read, size_log2, code);
            if (!site || !site->cells) return;
            read_source(state, *site, address, size_log2);
            check_proxy_fence(state, *site, address, size_log2, &fence_missing);
        });
    } else if (reads) {
        access_global(state, copy, Access::async_read, code,
                      [&](AccessSite& site, uintptr_t address, unsigned size_log2) {
                          read_source(state, site, address, size_log2);
                      });
    }
    // A swizzle only permutes the pieces of a box within the box, so the check marks the box's whole range as written.
    if (BlockState* owner = owner_of_shared(*state.block, reinterpret_cast<uintptr_t>(copy.shared))) {
        unsigned line = copy.map.dimensions > 1 ? 16u << copy.map.swizzle : 0;
        note_swizzled_fill(*owner, reinterpret_cast<uintptr_t>(copy.shared), copy.bytes(), line);
    }
    each_piece(copy.shared, copy.bytes(), lane_piece, [&](uintptr_t to, unsigned size_log2) {
        AccessSite* site = access_piece(state, to, Access::async_write, size_log2, code);
        if (site && site->cells) write_destination(state, *site, to, size_log2);
    });
    return state.epoch.with_time(Epoch::time_pending);
}

}  // namespace sim::checks

namespace sim::events {

using namespace sim::checks;

void async_copy(Thread& thread, void* shared, const void* global, size_t bytes, size_t zero_fill, CacheOperator cache,
                const void* address) {
    ThreadState& state = *state_of(thread);
    each_piece(global, bytes - zero_fill, lane_piece, [&](uintptr_t from, unsigned size_log2) {
        AccessSite* site = prepare_and_log(state, from, Access::async_read, size_log2, address);
        if (!site) return;
        if (logs_destinations(*site)) log_destination(*site, cache == CacheOperator::cg ? shared : nullptr);
        if (site->cells) read_source(state, *site, from, size_log2);
    });
    each_piece(shared, bytes, lane_piece, [&](uintptr_t to, unsigned size_log2) {
        AccessSite* site = prepare_and_log(state, to, Access::async_write, size_log2, address);
        if (site && site->cells) write_destination(state, *site, to, size_log2);
    });
    ThreadExtras& extras = extras_of(state);
    if (!extras.copies) extras.copies = new Growable<AsyncCopy>();
    extras.copies->push({reinterpret_cast<uintptr_t>(shared), static_cast<uint32_t>(bytes), extras.copy_group,
                         state.epoch.with_time(Epoch::time_pending), 0, false, state.block->foreign_reads});
    add_to(run_counters.async_bytes, bytes);
}

void async_commit(Thread& thread) {
    if (is_recorded(*thread.block)) record(thread, EventKind::cp_async_commit, thread.call_address);
    ++extras_of(*state_of(thread)).copy_group;
}

void async_wait(Thread& thread, unsigned groups_that_may_be_pending) {
    ThreadState& state = *state_of(thread);
    if (state.pending) settle(state, 0, nullptr);
    if (is_recorded(*thread.block))
        record_number(thread, EventKind::cp_async_wait, thread.call_address, groups_that_may_be_pending);
    if (!state.extras || !state.extras->copies) return;
    Growable<AsyncCopy>& copies = *state.extras->copies;
    size_t done = 0;
    for (; done < copies.size(); ++done) {
        const AsyncCopy& copy = copies[done];
        if (copy.group + groups_that_may_be_pending >= state.extras->copy_group) break;
        if (is_recorded(*thread.block))
            record(thread, EventKind::copy_complete, nullptr, reinterpret_cast<const void*>(copy.shared), copy.bytes);
        each_cell(find_shared(*state.block, copy.shared), copy.shared, copy.bytes, [&](ShadowCell& cell) {
            if (cell.write == copy.pending) cell.write = state.epoch;
        });
        if (!copy.operation && copy.foreign_reads != state.block->foreign_reads)
            add_to(run_counters.early_bytes, copy.bytes);
    }
    size_t kept = copies.size() - done;
    size_t prefetched = 0;
    for (size_t i = 0; i < kept; ++i) {
        AsyncCopy& copy = copies[i] = copies[done + i];
        if (!done || copy.overtaken) continue;
        copy.overtaken = true;
        prefetched += copy.bytes;
    }
    if (prefetched) add_to(run_counters.prefetched_bytes, prefetched);
    copies.truncate(kept);
}

void bulk_store(Thread& thread, const BulkCopy& copy, const void* address) {
    ThreadState& state = *state_of(thread);
    become_exact(*state.block);
    if (is_recorded(*thread.block)) record_bulk(thread, copy, false, true, 0, address);
    Epoch pending = state.epoch.with_time(Epoch::time_pending);
    read_shared_source(state, copy.shared, copy.bytes(), pending, address);
    Access access = copy.reduction == Reduction::none ? Access::async_write : Access::atomic;
    const Epoch epoch = state.epoch;
    access_global(state, copy, access, address, [&](AccessSite& site, uintptr_t to, unsigned size_log2) {
        if (access == Access::async_write) return write_destination(state, site, to, size_log2);
        state.epoch = pending;
        each_cell(site, to, size_log2, [&](ShadowCell& cell) { atomic_cell(state, cell, site, {}); });
        state.epoch = epoch;
    });
    BulkState& bulk = bulk_of(state);
    bulk.stores.push({copy, bulk.group, pending, address});
}

void bulk_commit(Thread& thread) {
    if (is_recorded(*thread.block)) record(thread, EventKind::cp_async_commit, thread.call_address);
    ++bulk_of(*state_of(thread)).group;
}

void bulk_wait(Thread& thread, unsigned groups_that_may_be_pending, bool reads_only) {
    ThreadState& state = *state_of(thread);
    if (state.pending) settle(state, 0, nullptr);
    if (is_recorded(*thread.block))
        record_number(thread, EventKind::cp_async_wait, thread.call_address, groups_that_may_be_pending);
    BulkState& bulk = bulk_of(state);
    // Groups complete in the order of their commits.
    auto is_done = [&](size_t i) {
        return i < bulk.stores.size() && bulk.stores[i].group + groups_that_may_be_pending < bulk.group;
    };
    for (; is_done(bulk.read); ++bulk.read) replace_reads(state, bulk.stores[bulk.read], state.epoch);
    if (reads_only) return;
    size_t written = 0;
    for (; is_done(written); ++written) replace_writes(bulk.stores[written], state.epoch);
    size_t place = 0;
    bulk.stores.keep([&](const BulkStore&) { return place++ >= written; });
    bulk.read -= written;
}

void proxy_fence(Thread& thread) {
    ThreadState& state = *state_of(thread);
    if (state.pending) settle(state, 0, nullptr);
    BlockState& block = *state.block;
    become_exact(block);
    BulkState& bulk = bulk_of(state);
    bulk.fences.push({state.time(), state.warp->sync_time, state.barrier_time, state.extras->known});
    set_time(state, ++block.time);
}

}  // namespace sim::events
