// The runtime's events, forwarded to the checks that need them.
#include "runtime/events.h"

#include "checks/core/access.h"
#include "checks/asynchronous/mbarriers.h"
#include "checks/synchronization/clusters.h"
#include "checks/counting/counting.h"
#include "checks/memory/errors.h"
#include "checks/memory/read_only_loads.h"
#include "checks/counting/executed.h"
#include "checks/core/hooks.h"
#include "checks/synchronization/races.h"
#include "checks/report/recording.h"
#include "checks/report/report.h"
#include "checks/synchronization/streams.h"
#include "checks/synchronization/volatiles.h"
#include "checks/counting/touched_sectors.h"
#include "checks/report/trace.h"

namespace sim::events {

using namespace sim::checks;

namespace {

// Decides the thread's pending questions (checks/memory/pending.cpp), because it does something other than a memory
// access.
inline void settle_if_pending(ThreadState& thread) {
    if (SIM_UNLIKELY(thread.pending)) settle(thread, 0, nullptr);
}

void settle_lanes(WarpState& warp, unsigned lanes) {
    if (!warp.block->extras) return;
    ThreadState* first = warp.block->threads + warp.warp->index * lanes_per_warp;
    for (; lanes; lanes &= lanes - 1) settle_if_pending(first[__builtin_ctz(lanes)]);
}

// Reports threads that have exited and therefore never arrive at the barrier.
void check_exits(BlockState& block, const unsigned* participants) {
    if (block.exit_reported) return;
    unsigned present = 0;
    const Thread* first = nullptr;
    for (unsigned w = 0; w < block.block->warp_count; ++w) {
        present += static_cast<unsigned>(__builtin_popcount(participants[w]));
        if (!first && participants[w]) first = &block.block->warps[w].threads[__builtin_ctz(participants[w])];
    }
    if (present == block.block->thread_count || !first) return;
    block.exit_reported = true;
    Finding finding = finding_for(FindingKind::barrier_after_exit, first, first->call_address);
    finding.side.line = first->wait_site.line;
    finding.payload = ExitedThreads{block.block->thread_count - present, block.block->thread_count};
    add_finding(finding);
}

void count_barrier(const Block& block, const unsigned* participants) {
    Locked locked(the_launch.lock);
    ++the_launch.barriers;
    for (unsigned w = 0; w < block.warp_count; ++w) {
        if (!participants[w]) continue;
        const Thread& thread = block.warps[w].threads[__builtin_ctz(participants[w])];
        ++the_launch.barriers_at.at(reinterpret_cast<uint64_t>(thread.call_address));
        return;
    }
}

}  // namespace

void submitted() { ++run_counters.submissions; }
void graph_instantiated() { ++run_counters.graphs; }

// --- the life of a grid ---

void launch_begin(Launch& launch) {
    count_launch();
    the_launch.launch = &launch;
    the_launch.kernel = kernel_index(launch.kernel_name);
    the_launch.concurrent = launch.workers > 1 && !launch.partly_checked;
    the_launch.blocks_joined = false;
    the_launch.arrays.clear();
    the_launch.has_dynamic_array = false;
    the_launch.changed.clear();
    the_launch.table_pieces.clear();
    the_launch.barriers = 0;
    the_launch.barriers_at.clear();
    the_launch.tensor_operations_at.clear();
    the_launch.operand_bytes_at.clear();
    memset(the_launch.tensor_operations, 0, sizeof the_launch.tensor_operations);
    the_launch.lock.reset();
    the_launch.sites_before = site_count();
    the_launch.counted_before = run_counters;
    if (!begin_ordered_launch(launch)) launch.checks_enabled = false;
    the_launch.exact = the_launch.exact || the_launch.cluster_size > 1;
}

const char* needs_one_worker(const Launch& launch) {
    if (launch.cluster.x * launch.cluster.y * launch.cluster.z > 1) return "it has clusters of blocks";
    if (launch.programmatic || (current_work() && !current_work()->alone)) return "there are several streams";
    return trace_limit || some_block_is_chosen() ? "what a block does is recorded" : nullptr;
}

void fall_back_to_one_worker() {
    the_launch.concurrent = false;
    each_worker([](WorkerState& worker) {
        keep_written(worker);
        worker.sites.each([](AccessSite& site) { site.guarded = false; });
    });
}

void launch_rolled_back() {
    each_worker([](WorkerState& worker) {
        undo_written(worker);
        drop_logs(worker);
        while (!worker.blocks.empty()) end_block(*worker.blocks.back());
        worker.sites.clear();
        worker.pool.clear();
        worker.known_barriers.clear();
        memset(worker.table_pieces, 0, sizeof worker.table_pieces);
        worker.waits_at.clear();
    });
    drop_sectors();
    forget_held_races();
    forget_read_only_loads();
    forget_site_ids(the_launch.sites_before);
    run_counters = the_launch.counted_before;
    past_launches().back().number = 0;  // 0 makes every later operation count the launch as complete
    end_ordered_launch();
    the_launch.launch = nullptr;
}

void launch_end(Launch& launch) {
    if (launch.error) note_failed_launch();
    if (recorded_block) end_recording();
    report_held_races();
    report_read_only_loads();
    // State left from a launch that was aborted.
    each_worker([](WorkerState& worker) {
        drop_logs(worker);
        while (!worker.blocks.empty()) end_block(*worker.blocks.back());
    });
    KernelRecord& record = kernel(the_launch.kernel);
    ++record.launches;
    record.grid = launch.grid;
    record.block = launch.block;
    record.dynamic_shared_bytes = launch.dynamic_shared_bytes;
    record.static_shared_bytes = launch.static_shared_bytes;
    uint64_t blocks = uint64_t(launch.grid.x) * launch.grid.y * launch.grid.z;
    record.blocks += blocks;
    record.threads += blocks * launch.block.x * launch.block.y * launch.block.z;
    record.barriers += the_launch.barriers;
    collect(record);
    auto collect_places = [](HashMap<uint64_t>& counts, Growable<PlaceCount>& places) {
        counts.each([&places](uint64_t address, uint64_t count) {
            add_count(places, site_id(reinterpret_cast<const void*>(address)), count);
        });
    };
    collect_places(the_launch.barriers_at, *record.barrier_sites);
    collect_places(the_launch.tensor_operations_at, *record.tensor_sites);
    collect_places(the_launch.operand_bytes_at, *record.operand_sites);
    for (unsigned type = 0; type < tensor_types; ++type)
        record.tensor_operations[type] += the_launch.tensor_operations[type];
    SectorTotals sectors = end_sectors();
    record.touched_sectors[0] += sectors.read;
    record.touched_sectors[1] += sectors.written;
    record.touched_sectors[2] += sectors.either;
    record.first_read_sectors += sectors.first_read;
    each_worker([](WorkerState& worker) {
        keep_written(worker);
        worker.pool.clear();
        worker.known_barriers.clear();
        worker.waits_at.clear();
    });
    end_ordered_launch();
    if (!launch.checks_enabled || launch.partly_checked) assume_written();
    the_launch.launch = nullptr;
}

void block_begin(Block& block) {
    record_block(begin_block(block));
    // Register the dynamic buffer even if it is empty. A kernel that uses the buffer without requesting memory must get
    // a finding.
    if (!the_launch.has_dynamic_array) {
        the_launch.has_dynamic_array = true;
        size_t offset = static_cast<size_t>(block.dynamic_shared - block.shared);
        shared_array(nullptr, offset, block.launch->dynamic_shared_bytes, "");
    }
}

void block_end(Block& block) {
    BlockState& state = *state_of(block);
    if (is_recorded(block)) end_recording();
    flush_block(state);
    end_block(state);
}

void thread_exit(Thread& thread) {
    if (ThreadState* state = state_of(thread)) settle_if_pending(*state);
    if (is_recorded(*thread.block)) record(thread, EventKind::thread_exit, nullptr);
}

// --- synchronization ---

void barrier(Block& block, unsigned barrier, const unsigned* participants) {
    BlockState& state = *state_of(block);
    for (unsigned w = 0; w < block.warp_count; ++w) settle_lanes(state.warps[w], participants[w]);
    unsigned waiting = 0;
    for (unsigned w = 0; w < block.warp_count; ++w) {
        waiting += static_cast<unsigned>(__builtin_popcount(block.warps[w].at_barrier[barrier].waiting));
    }
    count_barrier(block, participants);
    if (is_recorded(block)) record_barrier(block, barrier);
    if (waiting == block.live) {
        flush_block(state);
        if (!barrier) check_exits(state, participants);
    } else {
        for (unsigned w = 0; w < block.warp_count; ++w)
            if (participants[w] == block.warps[w].existing) flush_warp(state.warps[w]);
    }
    if (waiting == block.live && !state.arrivals[barrier])
        block_joined(state);
    else
        some_joined(state, barrier);
}

void barrier_arrive(Thread& thread, unsigned barrier) {
    ThreadState& state = *state_of(thread);
    settle_if_pending(state);
    if (is_recorded(*thread.block)) record_number(thread, EventKind::barrier_arrive, thread.call_address, barrier);
    arrived(state, barrier);
}

void warp_collective(Warp& warp, unsigned participants, bool orders_memory) {
    WarpState& state = *state_of(warp);
    settle_lanes(state, participants);
    if (is_recorded(*warp.block)) record_meeting(warp, participants);
    if (participants == (warp.existing & ~warp.exited)) flush_warp(state);
    if (orders_memory) warp_joined(state, participants);
}

void tensor_core_mma(TensorType type, unsigned operations, const void* address) {
    Locked locked(the_launch.lock);
    the_launch.tensor_operations[static_cast<unsigned>(type)] += operations;
    the_launch.tensor_operations_at.at(reinterpret_cast<uint64_t>(address)) += operations;
}

void cluster_arrive(Thread& thread, bool releases) {
    ThreadState& state = *state_of(thread);
    settle_if_pending(state);
    if (is_recorded(*thread.block))
        record_number(thread, EventKind::barrier_arrive, thread.call_address, cluster_number);
    barrier_of(*thread.block->cluster).arrive(state, releases);
}

void cluster_complete(Cluster& cluster) {
    for (unsigned rank = 0; rank < cluster.size; ++rank) {
        unsigned participants[max_warps_per_block];
        const Block& block = *cluster.blocks[rank];
        for (unsigned w = 0; w < block.warp_count; ++w)
            participants[w] = block.warps[w].at_barrier[cluster_number].arrived;
        count_barrier(block, participants);
        if (is_recorded(block)) record_barrier(block, cluster_number);
        flush_block(*state_of(*cluster.blocks[rank]));
    }
    barrier_of(cluster).complete(cluster);
}

void cluster_waited(Thread& thread) {
    ThreadState& state = *state_of(thread);
    settle_if_pending(state);
    if (is_recorded(*thread.block))
        record_number(thread, EventKind::barrier_wait_done, thread.call_address, cluster_number);
    barrier_of(*thread.block->cluster).wait(state);
}

void grid_dependency_waited(Thread& thread) {
    ThreadState& state = *state_of(thread);
    settle_if_pending(state);
    state.awaited = true;
    set_floors(state);
}

void grid_sync() {
    each_worker([](WorkerState& worker) {
        for (BlockState* block : worker.blocks) {
            unsigned participants[max_warps_per_block] = {};
            for (unsigned w = 0; w < block->block->warp_count; ++w) {
                participants[w] = ~block->block->warps[w].exited & block->block->warps[w].existing;
                settle_lanes(block->warps[w], participants[w]);
            }
            if (is_recorded(*block->block)) record_barrier(*block->block, grid_number);
            flush_block(*block);
            check_exits(*block, participants);
            ++block->foreign_reads;
        }
    });
    grid_joined();
    each_worker([](WorkerState& worker) {
        for (BlockState* block : worker.blocks) keep_copies_pending(*block);
    });
}

void atomic(Thread& thread, const void* data, size_t bytes, AtomicOp op, Scope scope, const void* address) {
    ThreadState& state = *state_of(thread);
    unsigned size_log2 = static_cast<unsigned>(__builtin_ctzll(bytes));
    bool reads = op != AtomicOp::store && op != AtomicOp::exchange;
    // An atomic operation of block scope on shared memory reaches all threads that can access it, so its scope is not
    // too narrow. In a cluster, other blocks can access that memory as well.
    bool alone = state.block->cluster_size == 1;
    bool shared = alone && in_shared(*state.block, reinterpret_cast<uintptr_t>(data));
    bool narrow = (scope == Scope::block || (scope == Scope::cluster && alone)) && !shared;
    unordered_access(state, reinterpret_cast<uintptr_t>(data), Access::atomic, size_log2, address,
                     {reads, op != AtomicOp::load, narrow});
}

void atomic_done(Thread& thread, const void* data, AtomicOp op, Scope scope, MemoryOrder order, bool stored,
                 bool changed) {
    ThreadState& state = *state_of(thread);
    note_atomic(state, thread.call_address, op, changed);
    if (op != AtomicOp::store) acquire(state, data, scope, acquires(order));
    if (stored) checks::release(state, data, scope, order, op == AtomicOp::store);
    if (changed) note_change(reinterpret_cast<uintptr_t>(data));
}

void read_only_load(Thread& thread, const void* data, size_t bytes, const void* address) {
    note_read_only_load(*state_of(thread), reinterpret_cast<uintptr_t>(data), static_cast<unsigned>(bytes), address);
}

void fence(Thread& thread, Scope scope, MemoryOrder order) {
    ThreadState& state = *state_of(thread);
    settle_if_pending(state);
    fenced(state, scope, order);
}

// --- memory ---

void allocation(const Allocation& allocation) {
    ArenaRange arena = arena_range();
    host_view.arena_base = reinterpret_cast<uintptr_t>(arena.base);
    host_view.arena_bytes = arena.bytes;
    Region& region = add_allocation(allocation);
    count_allocation(region);
    host_view.shares = host_view.shares || host_shares(region);
    if (allocation.kind == MemoryKind::async) work_allocates(region);
}

void release(void* base, const void* address) {
    Region* region = find_region(reinterpret_cast<uintptr_t>(base));
    ThreadState* thread = current_thread ? state_of(*current_thread) : nullptr;
    if (region && thread)
        forget_sites(*thread->worker, *region);  // a kernel that calls free() runs on one worker only
    else if (region && !current_thread)
        work_frees(*region, address);
    if (Region* released = release_allocation(reinterpret_cast<uintptr_t>(base), address)) count_release(*released);
}

void host_write(const void* data, size_t bytes) {
    mark_written(reinterpret_cast<uintptr_t>(data), bytes);
    work_writes(reinterpret_cast<uintptr_t>(data), bytes);
}
void host_read(const void* data, size_t bytes) { work_reads(reinterpret_cast<uintptr_t>(data), bytes); }
void copied_to_host(const void* data, size_t bytes) { work_writes_host(reinterpret_cast<uintptr_t>(data), bytes); }
void host_copy(const void* to, const void* from, size_t bytes) {
    const Region* target = find_region(reinterpret_cast<uintptr_t>(to));
    if (is_host(target)) work_copies_out(reinterpret_cast<uintptr_t>(from), bytes);
    count_copy(target, find_region(reinterpret_cast<uintptr_t>(from)), bytes);
    remember_sectors(reinterpret_cast<uintptr_t>(to), bytes);
}
void host_fill(const void* to, size_t bytes) {
    count_fill(find_region(reinterpret_cast<uintptr_t>(to)), bytes);
    remember_sectors(reinterpret_cast<uintptr_t>(to), bytes);
}
void expect_output(void* base) { mark_expected(reinterpret_cast<uintptr_t>(base)); }
void read_only(void* base) { mark_read_only(reinterpret_cast<uintptr_t>(base)); }

void shared_array(const void* slot, size_t offset, size_t bytes, const char* name) {
    Locked locked(the_launch.lock);
    for (const SharedArray& known : the_launch.arrays)
        if (known.slot == slot) return;
    SharedArray array = {};
    array.slot = slot;
    array.offset = offset;
    array.bytes = bytes;
    // Give the array the same id in every launch of the kernel, so that equal findings are merged.
    array.id = static_cast<uint32_t>(mix(reinterpret_cast<uint64_t>(slot) + the_launch.kernel)) | 1u << 31;
    strncpy(array.name, name ? name : "", sizeof array.name - 1);
    the_launch.arrays.push(array);
}

// --- the C interface ---

void reset() {
    forget_findings();
    forget_held_races();
    forget_read_only_loads();
    forget_kernels();
    forget_executed();
    forget_run_counters();
    forget_sectors();
    forget_regions();
    forget_names();
    forget_streams();
    forget_report();
    forget_recording();
    each_worker([](WorkerState& worker) { worker.sites.clear(); });
    forget_site_ids();
    traces.clear();
    host_view = {};
}

int configure(const char* key, const char* value) {
    if (!strcmp(key, "record")) return choose_recorded(value) ? 0 : -1;
    char* end;
    unsigned long number = strtoul(value, &end, 10);
    if (end == value || *end) return -1;
    if (!strcmp(key, "max_findings")) {
        set_finding_limit(number);
    } else if (!strcmp(key, "same_value_races")) {
        if (number > 1) return -1;
        report_same_value(number != 0);
    } else if (!strcmp(key, "trace")) {
        trace_limit = number < 255 ? static_cast<unsigned>(number) : 255;
    } else {
        return -1;
    }
    return 0;
}

const char* report() { return write_report(); }

int writer(const void* data, unsigned writer[6]) {
    uintptr_t address = reinterpret_cast<uintptr_t>(data);
    Region* region = find_region(address);
    if (!region || !region->cells) return 0;
    const ShadowCell& cell = region->cells[(address - region->base) >> region->shift];
    Epoch epoch = cell.write;
    // The cell stores the last ordinary write and a later atomic store separately. Return the thread of the later one.
    Epoch stored = last_atomic_store(cell);
    if (stored != never && stored.not_earlier_than(epoch)) epoch = stored;
    if (epoch.serial() == 0) return 0;
    uint3 names[2];  // block and thread
    if (!name_thread(epoch.serial(), epoch.thread(), &names[0], &names[1])) return 0;
    memcpy(writer, names, sizeof names);
    return 1;
}

}  // namespace sim::events
