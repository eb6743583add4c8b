#include "checks/core/state.h"

#include "checks/core/access.h"
#include "checks/synchronization/clusters.h"
#include "checks/counting/executed.h"
#include "checks/asynchronous/mbarriers.h"
#include "checks/asynchronous/wgmma.h"
#include "checks/asynchronous/swizzles.h"
#include "checks/asynchronous/tensor_memory.h"
#include "checks/counting/request.h"
#include "runtime/host_threads.h"
#include "sim/shared.h"

namespace sim::checks {

LaunchState the_launch;

namespace {

SpinLock workers_lock;
WorkerState* workers[64];
unsigned worker_count = 0;
// The launch to which each serial belongs. Findings name blocks with it.
Growable<PastLaunch> past;  // sorted by first serial
uint32_t next_serial = 1;
// Serials reserved for grid barriers: each barrier gives every block of the launch a new serial.
constexpr uint32_t serial_reserve = Epoch::serial_limit / 4;

}  // namespace

WorkerState& worker_of(const Block& block) {
    Locked locked(workers_lock);
    for (unsigned i = 0; i < worker_count; ++i)
        if (workers[i]->worker == block.worker) return *workers[i];
    if (worker_count == 64) abort();
    auto* state = new WorkerState();
    state->worker = block.worker;
    state->sectors = zeros<TouchedSectors>();
    state->numbers = zeros<NumberSet>();
    return *(workers[worker_count++] = state);
}

void each_worker(void (*visit)(WorkerState&)) {
    for (unsigned i = 0; i < worker_count; ++i) visit(*workers[i]);
}

ThreadExtras& extras_of(ThreadState& thread) {
    if (!thread.extras) {
        thread.extras = thread.worker->pool.take<ThreadExtras>();
        memset(static_cast<void*>(thread.extras), 0, sizeof *thread.extras);
        thread.block->extras = true;
    }
    return *thread.extras;
}

void set_time(ThreadState& thread, uint32_t time) {
    thread.epoch = thread.epoch.with_time(time < Epoch::time_limit ? time : Epoch::time_limit);
    if (thread.block->exact) {
        thread.covered = Epoch::none();
        thread.warp_covered = Epoch::none();
    } else {
        thread.covered = Epoch::reach_beyond_warp();
        thread.warp_covered = thread.epoch.without_lane().with_sharing(one_warp);
    }
}

void set_floors(ThreadState& thread) {
    const BlockState& block = *thread.block;
    if (thread.barrier_time < block.barrier_time) thread.barrier_time = block.barrier_time;
    uint32_t open = the_launch.open_serial;
    if (the_launch.overlap_serials && !thread.awaited && the_launch.overlap_first < open)
        open = the_launch.overlap_first;
    Epoch launch(open, 0);
    // Once a block's clock has stopped, all its accesses count as ordered.
    uint32_t time = thread.barrier_time < Epoch::time_limit ? thread.barrier_time : Epoch::time_pending;
    // In a cluster, blocks with smaller serials may have written to this block's shared memory. So no access to it is
    // ordered by its serial alone.
    if (block.cluster_size > 1)
        thread.floors[shared_window] = {never, never};
    else
        thread.floors[shared_window] = {Epoch(block.first_serial, 0), Epoch(block.serial, time)};
    thread.floors[global_window] = {written_before, launch};
    thread.floors[initialized_window] = {never, launch};
}

namespace {

// Clears the worker's sites. They are valid for one launch: between launches, tensors are allocated and freed, and
// shared arrays move.
void prepare_worker(WorkerState& worker) {
    if (worker.launch == the_launch.launch->id) return;
    worker.launch = the_launch.launch->id;
    worker.tables = worker.virtual_tables = {};
    memset(worker.table_pieces, 0, sizeof worker.table_pieces);
    worker.sites.each([](AccessSite& site) {
        site.limit = 0;
        memset(site.traced, 0, sizeof site.traced);
    });
    begin_sectors(worker);
}

SharedMemory& shared_memory_of(WorkerState& worker, const Block& block) {
    uintptr_t base = reinterpret_cast<uintptr_t>(block.shared);
    SharedMemory* shared = worker.shared;
    while (shared && shared->base != base) shared = shared->next;
    if (!shared) {
        shared = zeros<SharedMemory>();
        shared->base = base;
        shared->next = worker.shared;
        worker.shared = shared;
    }
    return *shared;
}

}  // namespace

BlockState& begin_block(Block& block) {
    WorkerState& worker = worker_of(block);
    prepare_worker(worker);
    BlockState* state = worker.free_blocks;
    if (state) {
        worker.free_blocks = state->next;
    } else {
        state = zeros<BlockState>();
    }
    if (state->capacity < block.thread_count) {
        free(state->threads);
        state->capacity = (block.thread_count + 31) & ~31u;
        state->threads =
            static_cast<ThreadState*>(aligned_alloc(alignof(ThreadState), state->capacity * sizeof(ThreadState)));
        if (!state->threads) no_memory();
    }
    state->block = &block;
    state->worker = &worker;
    state->shared = &shared_memory_of(worker, block);
    // The blocks of a cluster have consecutive serials.
    state->cluster_size = block.cluster->size;
    state->cluster_first = the_launch.first_serial + static_cast<uint32_t>(block.cluster->linear * block.cluster->size);
    state->first_serial = state->serial = state->cluster_first + block.rank;
    state->remote = nullptr;
    state->foreign_reads = 0;
    state->time = state->barrier_time = 1;  // time 0 is before everything that the block does
    state->extras = state->fenced = state->exit_reported = state->heard_others = false;
    state->barrier_known = nullptr;
    state->exact = the_launch.exact;
    memset(static_cast<void*>(state->arrivals), 0, sizeof state->arrivals);
    block.checks = state;
    for (unsigned w = 0; w < block.warp_count; ++w) {
        state->warps[w] = {&block.warps[w], state, 1, nullptr};
        block.warps[w].checks = &state->warps[w];
    }
    // Kernels with many small blocks spend much of their time here. So build the state that a warp's threads share
    // once.
    ThreadState pattern = {};
    pattern.block = state;
    pattern.worker = &worker;
    set_floors(pattern);
    Thread* running = block.threads;
    ThreadState* thread = state->threads;
    for (unsigned first = 0; first < block.thread_count; first += lanes_per_warp) {
        pattern.epoch = Epoch(state->serial, 1, first);
        pattern.warp = &state->warps[first / lanes_per_warp];
        set_time(pattern, 1);
        unsigned lanes = block.thread_count - first < lanes_per_warp ? block.thread_count - first : lanes_per_warp;
        for (unsigned lane = 0; lane < lanes; ++lane, ++thread, ++running) {
            *thread = pattern;
            thread->epoch = pattern.epoch.with_thread(first + lane);
            thread->thread = running;
            thread->lane = static_cast<uint8_t>(lane);
            running->checks = thread;
        }
    }
    worker.blocks.push(state);
    return *state;
}

void end_block(BlockState& state) {
    WorkerState& worker = *state.worker;
    collect_executed(state);
    forget_remote(state);
    if (state.block->rank == 0) forget_cluster(*state.block->cluster);
    if (state.extras) {
        for (unsigned i = 0; i < state.block->thread_count; ++i) {
            ThreadExtras* extras = state.threads[i].extras;
            if (!extras) continue;
            forget_writes(*extras);
            free_registers(extras->registers);
            delete extras->copies;
            delete extras->bulk;
            delete extras->tensor;
        }
    }
    forget_wgmma(state);
    forget_tensor_memory(state);
    forget_swizzles(state);
    // A later launch without checks reuses these structures. Clear the pointers, so that its accesses are not
    // attributed to the block that ends here.
    for (unsigned i = 0; i < state.block->thread_count; ++i) state.block->threads[i].checks = nullptr;
    for (unsigned w = 0; w < state.block->warp_count; ++w) state.block->warps[w].checks = nullptr;
    state.block->checks = nullptr;
    for (size_t i = 0; i < worker.blocks.size(); ++i) {
        if (worker.blocks[i] != &state) continue;
        worker.blocks.remove_unordered(i);
        break;
    }
    state.next = worker.free_blocks;
    worker.free_blocks = &state;
}

void note_heard_others(BlockState& block, const void* variable) {
    if (!the_launch.launch->partly_checked || block.heard_others) return;
    if (in_shared(block, reinterpret_cast<uintptr_t>(variable))) return;
    const Cluster& cluster = *block.block->cluster;
    for (unsigned rank = 0; rank < cluster.size; ++rank) state_of(*cluster.blocks[rank])->heard_others = true;
}

bool may_know_others(const BlockState& block) { return the_launch.launch->partly_checked && block.heard_others; }

// --- shared memory ---

BlockState* owner_of_shared(BlockState& block, uintptr_t address) {
    const void* data = reinterpret_cast<const void*>(address);
    if (is_shared_of(*block.block, data)) return &block;
    Block* owner = block.cluster_size > 1 ? shared_owner(*block.block, data) : nullptr;
    return owner ? state_of(*owner) : nullptr;
}

bool in_shared(const BlockState& block, uintptr_t address) {
    return shared_owner(*block.block, reinterpret_cast<const void*>(address)) != nullptr;
}

namespace {

// An upper bound on a block's shared memory, red zones included.
constexpr size_t shared_extent = size_t(512) << 10;

void fill_region(Region& region, const SharedArray& array, SharedMemory& shared) {
    region.base = shared.base + array.offset;
    region.bytes = array.bytes;
    region.cells =
        shared.cells ? shared.cells + array.offset : nullptr;  // the array's first cell; one cell per byte is reserved
    region.shift = 2;
    region.space = Space::shared;
    region.kind = array.slot ? RegionKind::shared_array : RegionKind::dynamic_shared;
    region.id = array.id;
    memcpy(region.name, array.name, sizeof array.name);
}

// Returns the regions of this launch's shared arrays that have been placed so far.
Growable<Region*>& regions_of(BlockState& block) {
    SharedMemory& shared = *block.shared;
    if (!shared.cells) shared.cells = map_cells(shared_extent);
    Locked locked(the_launch.lock);
    size_t known = shared.launch == the_launch.launch->id ? shared.known : 0;
    for (; known < the_launch.arrays.size(); ++known) {
        if (known == shared.regions.size()) shared.regions.push(zeros<Region>());
        fill_region(*shared.regions[known], the_launch.arrays[known], shared);
    }
    shared.launch = the_launch.launch->id;
    shared.known = known;
    return shared.regions;
}

}  // namespace

Region* find_shared(BlockState& block, uintptr_t address) {
    Growable<Region*>& regions = regions_of(block);
    for (size_t i = 0; i < block.shared->known; ++i)
        if (address - regions[i]->base < regions[i]->bytes) return regions[i];
    return nullptr;
}

Region* nearest_shared(BlockState& block, uintptr_t address) {
    Growable<Region*>& regions = regions_of(block);
    Region* best = nullptr;
    uintptr_t best_distance = ~uintptr_t(0);
    for (size_t i = 0; i < block.shared->known; ++i) {
        Region* region = regions[i];
        uintptr_t end = region->base + region->bytes;
        if (address - region->base < region->bytes) return region;  // the access begins inside and crosses the end
        uintptr_t distance = address >= end ? address - end : region->base - address;
        // No access misses dynamic shared memory of 0 bytes by lying before it.
        if (distance >= best_distance || (!region->bytes && address < end)) continue;
        best = region;
        best_distance = distance;
    }
    return best;
}

// --- names ---

bool begin_serials(PastLaunch launch) {
    the_launch.first_serial = the_launch.start_serial = launch.first_serial = next_serial;
    the_launch.blocks = launch.blocks;
    the_launch.cluster_size = launch.cluster.x * launch.cluster.y * launch.cluster.z;
    if (uint64_t(next_serial) + launch.blocks + serial_reserve < Epoch::serial_limit) {
        host_threads::HistoryLock lock;
        past.push(launch);
        return true;
    }
    if (next_serial == 1) return false;  // too many blocks for one launch
    // All serials are used. Start again at 1: accesses of earlier launches stay ordered before later ones, but findings
    // can no longer name their kernels and threads.
    next_serial = 1;
    past.clear();
    age_regions();
    each_worker([](WorkerState& worker) {
        for (SharedMemory* shared = worker.shared; shared; shared = shared->next) {
            unmap_cells(shared->cells, shared_extent);
            shared->cells = nullptr;
            shared->launch = 0;
        }
    });
    return begin_serials(launch);
}

void end_serials() { next_serial = the_launch.first_serial + the_launch.blocks; }

void forget_names() {
    host_threads::HistoryLock lock;
    past.clear();
}

Growable<PastLaunch>& past_launches() { return past; }

const PastLaunch* past_launch(uint32_t serial) {
    size_t low = partition_point(past.size(), [=](size_t i) { return past[i].first_serial <= serial; });
    return low == 0 ? nullptr : &past[low - 1];
}

bool name_thread(uint32_t serial, unsigned thread, uint3* block_index, uint3* thread_index) {
    const PastLaunch* launch = past_launch(serial);
    if (!launch || launch->call) return false;
    uint32_t linear = (serial - launch->first_serial) % launch->blocks;
    const uint3 &grid = launch->grid, &cluster = launch->cluster, &block = launch->block;
    uint32_t size = cluster.x * cluster.y * cluster.z, rank = linear % size, number = linear / size;
    uint32_t across = grid.x / cluster.x, down = grid.y / cluster.y;
    *block_index = {number % across * cluster.x + rank % cluster.x,
                    number / across % down * cluster.y + rank / cluster.x % cluster.y,
                    number / across / down * cluster.z + rank / cluster.x / cluster.y};
    *thread_index = {thread % block.x, thread / block.x % block.y, thread / block.x / block.y};
    return true;
}

}  // namespace sim::checks
