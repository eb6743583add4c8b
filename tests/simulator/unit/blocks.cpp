// Tests of the state that the checks keep for each block: its serial number, its shared arrays, and the effects of
// launches.
#include <malloc.h>

#include "checks/synchronization/clusters.h"
#include "checks/counting/counting.h"
#include "checks/counting/executed.h"
#include "checks/synchronization/streams.h"
#include "checks/asynchronous/swizzles.h"
#include "checks/counting/touched_sectors.h"
#include "runtime/async_operations.h"
#include "as_thread.h"
#include "grid.h"
#include "unit.h"

using namespace sim::checks;
using unit::Floats;
using unit::Grid;

extern "C" void __wrap___sanitizer_cov_trace_pc();

namespace {

bool same(const uint3& actual, uint32_t x, uint32_t y, uint32_t z) {
    return actual.x == x && actual.y == y && actual.z == z;
}

bool same(EpochRange actual, Epoch begin, Epoch end) { return actual.begin() == begin && actual.end() == end; }

// Returns the bytes that the process has allocated with malloc.
size_t held() {
    struct mallinfo2 now = mallinfo2();
    return now.uordblks + now.hblkhd;
}

// Begins a launch that uses this many serial numbers. Returns the first one.
uint32_t pass(uint32_t blocks) {
    PastLaunch launch = {};
    launch.blocks = blocks;
    launch.grid = launch.block = launch.cluster = {1, 1, 1};
    if (!begin_serials(launch)) return 0;
    end_serials();
    return the_launch.start_serial;
}

}  // namespace

CASE(finding_names_block_and_thread_from_the_launch_shape) {
    PastLaunch launch = {};
    launch.grid = {4, 6, 12};
    launch.block = {4, 2, 3};
    launch.cluster = {2, 3, 4};
    launch.blocks = 4 * 6 * 12;
    CHECK(begin_serials(launch));
    uint32_t serial = the_launch.first_serial;
    uint3 index, thread;
    CHECK_EQUAL(the_launch.cluster_size, 24);
    for (uint32_t c = 0; c < 12; ++c)
        for (uint32_t rank = 0; rank < 24; ++rank, ++serial) {
            CHECK(name_thread(serial, rank, &index, &thread));
            CHECK(same(index, c % 2 * 2 + rank % 2, c / 2 % 2 * 3 + rank / 2 % 3, c / 4 * 4 + rank / 6));
            CHECK(same(thread, rank % 4, rank / 4 % 2, rank / 8));
        }
    end_serials();
    CHECK_EQUAL(pass(3), serial);
    CHECK_EQUAL(pass(1), serial + 3);
    CHECK(past_launch(serial - 1)->blocks == 4 * 6 * 12 && past_launch(serial + 2)->blocks == 3);
    forget_names();
    CHECK(!past_launch(serial) && !name_thread(serial, 0, &index, &thread));
}

CASE(serials_start_again_when_all_are_used) {
    constexpr uint32_t limit = Epoch::serial_limit, reserve = limit / 4;
    for (uint32_t more : {0u, 1u}) {
        pass(1);
        the_launch.blocks = limit - reserve - 10 - the_launch.first_serial;
        end_serials();
        CHECK_EQUAL(pass(9 + more), more ? 1 : limit - reserve - 10);
    }
    pass(1);
    the_launch.blocks = 0u - the_launch.first_serial + 1;
    end_serials();
    CHECK_EQUAL(pass(limit - reserve), 0);  // more serial numbers than exist
    CHECK_EQUAL(pass(limit - reserve - 2), 1);
    the_launch.blocks = 0u - the_launch.first_serial + 1;
    end_serials();
    forget_names();
}

CASE(past_launch_is_found_by_each_of_its_serials) {
    forget_names();
    uint32_t first[20];
    for (uint32_t i = 0; i < 20; ++i) first[i] = pass(1 + i % 4);
    for (uint32_t i = 0; i < 20; ++i)
        for (uint32_t serial = first[i]; serial <= first[i] + i % 4; ++serial)
            CHECK(past_launch(serial) && past_launch(serial)->first_serial == first[i]);
    CHECK(!past_launch(first[0] - 1));
    CHECK_EQUAL(past_launches().size(), 20);
    // A past launch may be a copy by the host, for which name_thread finds no thread.
    uint3 index, thread;
    CHECK(name_thread(first[19], 0, &index, &thread));
    past_launches().back().call = "a copy";
    CHECK(!name_thread(first[19], 0, &index, &thread) && name_thread(first[18], 0, &index, &thread));
    forget_names();
}

CASE(last_writer_is_unknown_after_serials_restart) {
    Floats x;
    {
        Grid grid(1, 32);
        x.write(grid.thread(0, 0), 3);
        BlockState& block = *state_of(grid.block(0));
        CHECK(find_shared(block, reinterpret_cast<uintptr_t>(grid.shared(0)))->cells ==
              block.shared->cells + (256 << 10));
        block.shared->cells[7].write = grid.thread(0, 0).epoch;
    }
    the_launch.first_serial = Epoch::serial_limit;
    end_serials();
    pass(1);
    CHECK(x.cell(3).write == written_before);
    CHECK_EQUAL(past_launches().size(), 1);
    Grid grid(1, 32);
    BlockState& block = *state_of(grid.block(0));
    CHECK(!block.shared->cells);
    CHECK(find_shared(block, reinterpret_cast<uintptr_t>(grid.shared(0)))->cells &&
          block.shared->cells[7].write == never);
}

CASE(rolled_back_launch_gets_new_shared_cells_when_serials_restart) {
    Grid grid(1, 32);
    BlockState& block = *state_of(grid.block(0));
    const uintptr_t address = reinterpret_cast<uintptr_t>(grid.shared(0));
    find_shared(block, address)->cells->write = grid.thread(0, 0).epoch;
    sim::events::launch_rolled_back();
    the_launch.first_serial = Epoch::serial_limit;
    end_serials();
    sim::events::launch_begin(grid.launch());
    sim::events::block_begin(grid.block(0));
    Region* region = find_shared(*state_of(grid.block(0)), address);
    CHECK(region->cells == state_of(grid.block(0))->shared->cells + (256 << 10) && region->cells->write == never);
}

CASE(block_begins_without_state_of_earlier_blocks) {
    const VectorClock* known = reinterpret_cast<const VectorClock*>(&the_launch);
    for (unsigned turn = 0; turn < 3; ++turn) {  // later turns reuse the memory of earlier blocks
        const unsigned count = turn ? 72 : 40;
        Grid grid(4, count, 2);
        for (unsigned b = 0; b < 4; ++b) {
            BlockState& block = *state_of(grid.block(b));
            CHECK(block.block == &grid.block(b) && block.worker == grid.thread(0, 0).worker);
            CHECK(block.capacity >= count && block.capacity % 32 == 0);
            CHECK_EQUAL(block.serial, the_launch.first_serial + b);
            CHECK(block.first_serial == block.serial && block.cluster_size == 2);
            CHECK_EQUAL(block.cluster_first, the_launch.first_serial + b / 2 * 2);
            CHECK(block.time == 1 && block.barrier_time == 1 && !block.barrier_known && !block.remote);
            // Blocks of a cluster are exact from the start: their threads' clocks are stored one by one.
            CHECK(!block.extras && block.exact && !block.fenced && !block.exit_reported);
            CHECK(!block.executed && !block.wgmma && !block.tensor_memory && !block.swizzles);
            for (const VectorClock* arrival : block.arrivals) CHECK(!arrival);
            for (unsigned w = 0; w < (count + 31) / 32; ++w) {
                const WarpState& warp = block.warps[w];
                CHECK(warp.warp == &grid.warp(b, w) && warp.block == &block && warp.sync_time == 1 && !warp.parked);
                CHECK(state_of(grid.warp(b, w)) == &warp);
            }
            for (unsigned t = 0; t < count; ++t) {
                ThreadState& thread = grid.thread(b, t);
                CHECK(&thread == block.threads + t && thread.thread == grid.block(b).threads + t);
                CHECK(thread.block == &block && thread.worker == block.worker && thread.warp == block.warps + t / 32);
                CHECK(thread.lane == t % 32 && thread.epoch == Epoch(block.serial, 1, t) && thread.barrier_time == 1);
                CHECK(!thread.extras && !thread.awaited && !thread.pending && !thread.recorded && !thread.watches);
                thread.awaited = true;
                thread.lane = 77;
            }
            CHECK(!grid.block(b).threads[count].checks);
            CHECK_EQUAL(block.worker->blocks.size(), 4);
            block.time = block.barrier_time = 50;
            block.barrier_known = block.arrivals[0] = block.arrivals[15] = known;
            block.extras = block.fenced = block.exit_reported = true;
            block.warps[1].sync_time = 9;
        }
    }
    Grid grid(1, 32);
    CHECK(!state_of(grid.block(0))->exact);
}

CASE(next_block_reuses_the_storage_of_an_ended_block) {
    Grid grid(2, 32);
    WorkerState& worker = *grid.thread(0, 0).worker;
    BlockState *first = state_of(grid.block(0)), *second = state_of(grid.block(1));
    CHECK(first != second && first->shared != second->shared && first->threads != second->threads);
    SharedMemory* shared = second->shared;
    sim::events::block_end(grid.block(1));
    CHECK(worker.blocks.size() == 1 && worker.blocks[0] == first && worker.free_blocks == second);
    sim::events::block_begin(grid.block(1));
    CHECK(state_of(grid.block(1)) == second && second->shared == shared && worker.blocks.size() == 2);
    // A block whose memory is too small for its threads frees it and takes new memory.
    BlockState* free_blocks = worker.free_blocks;
    worker.free_blocks = nullptr;
    {
        Grid small(1, 32);
    }
    size_t before = held();
    {
        Grid large(1, 128);
    }
    CHECK(worker.free_blocks->capacity == 128 && held() - before < 128 * sizeof(ThreadState));
    worker.free_blocks->next = free_blocks;
}

CASE(state_of_a_block_and_its_threads_is_freed) {
    Floats x;
    static uint32_t registers[4];
    size_t before = 0;
    for (unsigned turn = 0; turn <= 20; ++turn) {
        forget_names();
        Grid grid(2, 64, 2);
        BlockState& block = *state_of(grid.block(0));
        for (unsigned t : {0u, 63u}) {
            ThreadState& thread = grid.thread(0, t);
            sim::events::async_copy(*thread.thread, grid.shared(0) + 16 * t, x.at(0), 16, 0, sim::CacheOperator::cg,
                                    &registers);
            sim::BulkCopy copy = sim::run_of_bytes(grid.shared(0), x.at(0), 16);
            sim::events::bulk_store(*thread.thread, copy, &registers);
            uint32_t* variables[] = {registers};
            sim::events::accumulators_pending(*thread.thread, variables, 1);
            extras_of(thread).writes = static_cast<Growable<PendingWrite>*>(calloc(1, sizeof(Growable<PendingWrite>)));
            extras_of(thread).writes->push({});
        }
        note_swizzled_fill(block, reinterpret_cast<uintptr_t>(grid.shared(0)), 16, 128);
        unit::as_thread(grid.thread(0, 5), [] { __wrap___sanitizer_cov_trace_pc(); });
        on_access<2, false>(grid.thread(1, 3), reinterpret_cast<uintptr_t>(grid.shared(0)), &registers);
        CHECK(block.swizzles && block.executed && block.extras && block.remote);
        for (unsigned b : {0u, 1u}) end_block(*state_of(grid.block(b)));
        CHECK(!block.swizzles && !block.executed && !block.remote);
        drop_logs(*block.worker);
        forget_findings();
        if (turn == 10) before = held();  // measure after malloc's caches are full
        CHECK(turn < 20 || held() == before);
    }
    forget_executed();
}

CASE(clock_at_its_limit_does_not_advance) {
    Grid grid(1, 64);
    ThreadState& thread = grid.thread(0, 37);
    for (uint32_t time : {2u, Epoch::time_limit - 1, Epoch::time_limit, Epoch::time_limit + 1, Epoch::time_limit + 9}) {
        set_time(thread, time);
        CHECK_EQUAL(thread.time(), time < Epoch::time_limit ? time : Epoch::time_limit);
        CHECK(thread.epoch.thread() == 37 && thread.covered == Epoch::reach_beyond_warp());
        CHECK(thread.warp_covered == thread.epoch.with_thread(32).with_sharing(one_warp));
    }
    thread.block->exact = true;
    set_time(thread, 3);
    CHECK(thread.time() == 3 && thread.covered == Epoch::none() && thread.warp_covered == Epoch::none());
}

CASE(floors_begin_at_the_block_and_end_at_its_last_barrier) {
    Grid grid(2, 32);
    ThreadState& thread = grid.thread(1, 0);
    BlockState& block = *thread.block;
    auto shared = [&] { return set_floors(thread), thread.floors[shared_window]; };
    const uint32_t last = Epoch::time_limit - 1;
    block.serial = block.first_serial + 6;
    for (uint32_t time : {1u, 7u, 3u, last}) {  // the block's time may be less than the thread's
        block.barrier_time = time;
        CHECK(same(shared(), Epoch(block.first_serial, 0), Epoch(block.serial, time == 3 ? 7 : time)));
    }
    block.barrier_time = Epoch::time_limit;
    CHECK(same(shared(), Epoch(block.first_serial, 0), Epoch(block.serial, Epoch::time_pending)));
    block.cluster_size = 2;
    CHECK(same(shared(), never, never));
    block.cluster_size = 1;
}

CASE(launches_that_cannot_overlap_are_ordered_before) {
    Grid grid(1, 32);
    ThreadState& thread = grid.thread(0, 0);
    const LaunchState& launch = the_launch;
    const uint32_t first = launch.first_serial, open = launch.open_serial;
    auto ends = [&](uint32_t serial) {
        set_floors(thread);
        return same(thread.floors[global_window], written_before, Epoch(serial, 0)) &&
               same(thread.floors[initialized_window], never, Epoch(serial, 0));
    };
    the_launch.open_serial = 100;
    the_launch.overlap_first = 60;
    CHECK(ends(100));
    the_launch.overlap_serials = 5;
    CHECK(ends(60));
    thread.awaited = true;
    CHECK(ends(100));
    thread.awaited = false;
    the_launch.overlap_first = 150;
    CHECK(ends(100));
    the_launch.overlap_serials = 0;
    the_launch.open_serial = open;
    CHECK_EQUAL(launch.first_serial, first);
}

CASE(site_state_is_valid_for_one_launch) {
    static const char code[1] = {};
    AccessSite* site = nullptr;
    {
        Grid grid(1, 32);
        WorkerState& worker = *grid.thread(0, 0).worker;
        site = worker.sites.find(code);
        site->limit = 7;
        site->traced[0] = site->traced[31] = 2;
        worker.tables = {1, 2, false, false};
        sim::events::block_end(grid.block(0));
        sim::events::block_begin(grid.block(0));
        CHECK(site->limit == 7 && site->traced[31] == 2 && worker.tables.bytes == 2);
    }
    Grid grid(1, 32);
    WorkerState& worker = *grid.thread(0, 0).worker;
    CHECK(site == worker.sites.find(code) && site->limit == 0 && worker.tables.bytes == 0);
    for (uint8_t traced : site->traced) CHECK_EQUAL(traced, 0);
}

CASE(each_worker_has_its_own_state) {
    static sim::Fiber another;
    Grid grid(1, 32);
    WorkerState& worker = *grid.thread(0, 0).worker;
    sim::Block block = {};
    block.worker = reinterpret_cast<sim::Worker*>(&another);
    CHECK(&worker_of(grid.block(0)) == &worker && &worker_of(block) != &worker &&
          &worker_of(block) == &worker_of(block));
    CHECK(worker_of(block).worker == block.worker && worker_of(block).sectors != worker.sectors);
    begin_sectors(worker_of(block));
    static unsigned workers;
    workers = 0;
    static const sim::Worker* one;
    for (const sim::Worker* each : {block.worker, grid.block(0).worker}) {
        one = each;
        each_worker([](WorkerState& state) { workers += state.worker == one; });
    }
    CHECK_EQUAL(workers, 2);
}

CASE(thread_extras_are_allocated_when_first_needed) {
    Grid grid(1, 32);
    ThreadState& thread = grid.thread(0, 4);
    memset(thread.worker->pool.take(4096), 0xff, 4096);
    thread.worker->pool.clear();
    CHECK(!thread.extras && !thread.block->extras);
    ThreadExtras& extras = extras_of(thread);
    CHECK(thread.extras == &extras && &extras_of(thread) == &extras && thread.block->extras);
    const ThreadExtras none = {};
    CHECK(!memcmp(&extras, &none, sizeof none) && !grid.thread(0, 5).extras);
}

CASE(shared_array_is_known_only_in_its_launch) {
    const char slots[2] = {};
    for (unsigned turn = 0; turn < 2; ++turn) {
        Grid grid(1, 32);
        uintptr_t base = reinterpret_cast<uintptr_t>(grid.block(0).shared);
        BlockState& block = *state_of(grid.block(0));
        sim::events::shared_array(slots, 128, 64, "first");
        if (turn == 0) sim::events::shared_array(slots + 1, 256, 64, "second");
        Region* first = find_shared(block, base + 191);
        CHECK(first && !strcmp(first->name, "first") && first->base == base + 128 && first->bytes == 64);
        CHECK(!find_shared(block, base + 127) && !find_shared(block, base + 192));
        Region* second = find_shared(block, base + 256);
        CHECK(!second == (turn == 1));
        CHECK(!second || (second->cells - first->cells == 128 && second->id != first->id));
        CHECK(first->shift == 2 && first->space == Space::shared && first->kind == RegionKind::shared_array);
        CHECK(nearest_shared(block, base + 210) == first);
        CHECK(nearest_shared(block, base + 250) == (second ? second : first));
        CHECK(nearest_shared(block, base + 100)->kind == RegionKind::shared_array);
        CHECK(nearest_shared(block, reinterpret_cast<uintptr_t>(grid.block(0).dynamic_shared) - 20)->kind ==
              RegionKind::dynamic_shared);
    }
}

CASE(address_between_shared_arrays_belongs_to_the_nearest_one) {
    static const char slots[3] = {};
    Grid grid(1, 32);
    uintptr_t base = reinterpret_cast<uintptr_t>(grid.block(0).shared);
    BlockState& block = *state_of(grid.block(0));
    const size_t offsets[] = {128, 192, 512};
    for (unsigned i = 0; i < 3; ++i) sim::events::shared_array(slots + i, offsets[i], 64, "array");
    auto nearest = [&](size_t offset) { return nearest_shared(block, base + offset)->base - base; };
    CHECK(nearest(0) == 128 && nearest(127) == 128 && nearest(191) == 128);
    CHECK(nearest(192) == 192 && nearest(256) == 192);  // the second array begins where the first one ends
    // If two arrays are equally far, the earlier one counts as the nearest.
    CHECK(nearest(383) == 192 && nearest(384) == 192 && nearest(385) == 512);
    CHECK(nearest(575) == 512 && nearest(600) == 512);
    CHECK(!find_shared(block, base + 256) && find_shared(block, base + 192)->base == base + 192);
}

CASE(shared_memory_of_any_block_of_the_cluster_is_found) {
    for (unsigned cluster : {1u, 2u}) {
        Grid grid(4, 32, cluster);
        BlockState& block = *state_of(grid.block(2));
        for (unsigned b = 0; b < 4; ++b) {
            bool reached = b == 2 || (b == 3 && cluster == 2);
            uintptr_t address = reinterpret_cast<uintptr_t>(grid.shared(b));
            CHECK(owner_of_shared(block, address) == (reached ? state_of(grid.block(b)) : nullptr));
            CHECK_EQUAL(in_shared(block, address), reached);
        }
        CHECK(!owner_of_shared(block, reinterpret_cast<uintptr_t>(&grid)));
    }
}

CASE(ended_block_is_forgotten_and_its_neighbor_is_kept) {
    Grid grid(2, 96);
    sim::events::block_end(grid.block(0));
    CHECK(!state_of(grid.block(0)));
    for (unsigned t = 0; t < 96; ++t) CHECK(!state_of(grid.block(0).threads[t]) && state_of(grid.block(1).threads[t]));
    for (unsigned w = 0; w < 3; ++w) CHECK(!state_of(grid.block(0).warps[w]) && state_of(grid.block(1).warps[w]));
}

CASE(cluster_state_ends_with_its_first_block) {
    Grid grid(2, 32, 2);
    grid.arrive_at_cluster(1, 0);
    sim::events::block_end(grid.block(1));
    CHECK(grid.block(0).cluster->checks);
    sim::events::block_end(grid.block(0));
    CHECK(!grid.block(0).cluster->checks);
}

CASE(shared_array_keeps_its_granules_during_a_launch) {
    for (unsigned turn = 0; turn < 2; ++turn) {
        Grid grid(1, 32);
        BlockState& block = *state_of(grid.block(0));
        Region* region = find_shared(block, reinterpret_cast<uintptr_t>(grid.shared(0)));
        CHECK_EQUAL(region->shift, 2);
        refine(*region, 0);
        CHECK(find_shared(block, reinterpret_cast<uintptr_t>(grid.shared(0))) == region && region->shift == 0);
    }
}
