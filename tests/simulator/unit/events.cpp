// Tests of the events of a launch: counters, the state after the launch, and what a rollback of the launch undoes.
#include "runtime/events.h"

#include <malloc.h>

#include "checks/counting/counting.h"
#include "checks/counting/executed.h"
#include "checks/core/hooks.h"
#include "checks/synchronization/order.h"
#include "checks/report/recording.h"
#include "checks/synchronization/streams.h"
#include "checks/counting/touched_sectors.h"
#include "checks/report/trace.h"
#include "as_thread.h"
#include "found.h"
#include "grid.h"
#include "unit.h"

using namespace sim::checks;
using namespace sim::events;
using sim::AtomicOp;
using sim::Scope;
using unit::Floats;
using unit::Grid;

namespace {

const char code[64] = {};

uint64_t key(const void* address) { return reinterpret_cast<uint64_t>(address); }

AccessSite& site_at(Grid& grid, unsigned place) { return *grid.thread(0, 0).worker->sites.find(code + place); }

// `read` logs a read at a code address. `requests` returns the number of requests that were counted there.
void read(Grid& grid, Floats& x, unsigned block, unsigned thread, unsigned place) {
    on_access<2, false>(grid.thread(block, thread), key(x.at(place)), code + place);
}
uint64_t requests(Grid& grid, unsigned place) { return site_at(grid, place).counters.requests; }

bool is(const char* kind) { return finding_count() == 1 && !strcmp(name_of(finding(0).kind), kind); }

sim::Launch launch_of(dim3 grid, dim3 block) {
    static uint64_t launches = 1 << 20;
    sim::Launch launch = {};
    launch.kernel_name = "recorded";
    launch.grid = grid;
    launch.block = block;
    launch.cluster = dim3(1);
    launch.checks_enabled = true;
    launch.workers = 1;
    launch.id = ++launches;
    return launch;
}

}  // namespace

CASE(launches_of_a_kernel_are_added) {
    forget_kernels();
    for (unsigned turn = 1; turn < 3; ++turn) {
        sim::Launch launch = launch_of(dim3(2, 3, 5), dim3(7, 2, 4));
        launch.dynamic_shared_bytes = 1000 + turn;
        launch.static_shared_bytes = 50 + turn;
        launch_begin(launch);
        uint32_t first = the_launch.first_serial;
        CHECK(the_launch.launch == &launch && past_launches().back().first_serial == first);
        the_launch.barriers = 4;
        the_launch.barriers_at.at(key(code + 1)) = 3;
        the_launch.tensor_operations_at.at(key(code + 2)) = 5;
        the_launch.operand_bytes_at.at(key(code + 3)) = 7;
        for (unsigned type = 0; type < sim::tensor_types; ++type) the_launch.tensor_operations[type] = type + 1;
        launch_end(launch);
        CHECK(!the_launch.launch);
        const KernelRecord& record = kernel(0);
        const uint32_t grid[] = {2, 3, 5}, block[] = {7, 2, 4};
        CHECK(!memcmp(&record.grid, grid, sizeof grid) && !memcmp(&record.block, block, sizeof block));
        CHECK_EQUAL(record.launches, turn);
        CHECK_EQUAL(record.blocks, 30 * turn);
        CHECK_EQUAL(record.threads, 30 * 56 * turn);
        CHECK_EQUAL(record.barriers, 4 * turn);
        CHECK(record.dynamic_shared_bytes == 1000 + turn && record.static_shared_bytes == 50 + turn);
        unsigned place = 1;
        for (auto* sites : {record.barrier_sites, record.tensor_sites, record.operand_sites}) {
            CHECK(sites->size() == 1 && (*sites)[0].site == site_id(code + place));
            CHECK_EQUAL((*sites)[0].count, (2 * place + 1) * turn);
            ++place;
        }
        for (unsigned type = 0; type < sim::tensor_types; ++type)
            CHECK_EQUAL(record.tensor_operations[type], (type + 1) * turn);
        sim::Launch next = launch_of(dim3(1), dim3(32));
        next.kernel_name = "another";
        launch_begin(next);
        CHECK_EQUAL(the_launch.first_serial, first + 30);
        CHECK(the_launch.barriers == 0 && the_launch.barriers_at.size() == 0);
        launch_end(next);
        CHECK(kernel(1).launches == 1 && kernel(1).barrier_sites->empty() && kernel(1).tensor_sites->empty());
        CHECK(kernel(1).barriers == 0 && kernel(1).operand_sites->empty() && kernel(1).tensor_operations[0] == 0);
        kernel(1).launches = 0;
    }
    forget_kernels();
}

CASE(touched_sectors_of_a_launch_are_counted) {
    forget_kernels();
    for (unsigned turn = 1; turn < 3; ++turn) {
        Grid grid(1, 32);
        if (turn == 1) forget_sectors();
        TouchedSectors& touched = *grid.thread(0, 0).worker->sectors;
        touched.touch(false, 3, 5);
        touched.touch(true, 5, 8);
        block_end(grid.block(0));
        launch_end(grid.launch());
        const KernelRecord& record = kernel(0);
        CHECK(record.touched_sectors[0] == 3 * turn && record.touched_sectors[1] == 4 * turn);
        CHECK(record.touched_sectors[2] == 6 * turn && record.first_read_sectors == 2);
        launch_begin(grid.launch());
    }
    forget_sectors();
    forget_kernels();
}

CASE(launch_pool_is_freed_when_the_launch_ends) {
    auto held = [] { return mallinfo2().uordblks; };
    for (bool rolled_back : {false, true}) {
        Grid grid(1, 32);
        WorkerState& worker = *grid.thread(0, 0).worker;
        worker.pool.clear();
        size_t before = held();
        worker.pool.take(1 << 16);
        CHECK(held() >= before + (1 << 16));
        if (rolled_back)
            launch_rolled_back();
        else
            launch_end(grid.launch());
        CHECK(held() < before + (1 << 16));
        launch_begin(grid.launch());
    }
}

CASE(only_events_of_the_chosen_block_are_recorded) {
    using Event = void (*)(Grid&, unsigned, sim::Thread&);
    const Event all[] = {
        [](Grid& grid, unsigned b, sim::Thread&) { grid.syncthreads(b); },
        [](Grid& grid, unsigned b, sim::Thread&) { grid.syncwarp(b, 0); },
        [](Grid& grid, unsigned b, sim::Thread&) { warp_collective(grid.warp(b, 0), 3, false); },
        [](Grid&, unsigned, sim::Thread& thread) { barrier_arrive(thread, 1); },
        [](Grid&, unsigned, sim::Thread& thread) { cluster_arrive(thread, true); },
        [](Grid&, unsigned, sim::Thread& thread) { cluster_waited(thread); },
        [](Grid&, unsigned, sim::Thread& thread) { thread_exit(thread); },
    };
    reset();
    CHECK_EQUAL(configure("record", "0,0,0,0"), 0);
    {
        Grid grid(2, 64);
        CHECK(recording.done && recorded_block == &grid.block(0));
        for (Event event : all) {
            for (unsigned b : {1u, 0u}) {
                size_t before = recording.events.size();
                event(grid, b, grid.block(b).threads[5]);
                CHECK_EQUAL(recording.events.size() > before, b == 0);
            }
        }
        block_end(grid.block(1));
        CHECK(recorded_block);
        block_begin(grid.block(1));
        block_end(grid.block(0));
        CHECK(!recorded_block);
    }
    reset();
    {
        Grid grid(2, 64, 2);
        for (unsigned b : {0u, 1u}) {
            grid.arrive_at_cluster(b, 5 + b);
            grid.warp(b, 0).at_barrier[sim::cluster_number].waiting = 1u << (5 + b);
        }
        size_t before = recording.events.size();
        grid.complete_cluster(0);
        CHECK_EQUAL(recording.events.size(), before + 2);
        const Recorded& arrives = recording.events[before];
        CHECK(arrives.kind == static_cast<uint8_t>(EventKind::barrier_wait) && arrives.thread == 5);
    }
    reset();
    {
        Grid grid(1, 32);
        launch_end(grid.launch());  // the launch ends before its blocks do
        CHECK(!recorded_block && recording.done);
        launch_begin(grid.launch());
    }
    CHECK_EQUAL(configure("record", "none"), 0);
    reset();
}

CASE(launch_begins_with_empty_state) {
    {
        Grid grid(1, 32);
        the_launch.changed.at(8) = true;
        shared_array(code, 0, 4, "array");
        CHECK(the_launch.arrays.size() == 2 && the_launch.has_dynamic_array);
    }
    for (unsigned workers : {1u, 2u}) {
        sim::Launch launch = launch_of(dim3(1), dim3(32));
        launch.workers = workers;
        site_id(code + 7);
        add_to(run_counters.async_bytes, 16);
        add_to(run_counters.prefetched_bytes, 4);
        the_launch.lock.lock();  // an earlier launch ended while it held the lock
        launch_begin(launch);
        const SpinLock open;
        CHECK(!memcmp(&the_launch.lock, &open, sizeof open));
        CHECK_EQUAL(the_launch.concurrent, workers > 1);
        CHECK(the_launch.arrays.empty() && !the_launch.has_dynamic_array && the_launch.changed.size() == 0);
        CHECK(the_launch.sites_before == site_count());
        CHECK(!memcmp(&the_launch.counted_before, &run_counters, sizeof run_counters));
        CHECK(launch.checks_enabled && !the_launch.exact);
        launch_end(launch);
    }
    sim::Launch launch = launch_of(dim3(1u << 28), dim3(32));  // more blocks than serial numbers
    launch_begin(launch);
    CHECK(!launch.checks_enabled);
    the_launch.blocks = 1;
    launch_end(launch);
    forget_run_counters();
}

CASE(launches_that_need_one_worker_are_detected) {
    sim::Launch launch = launch_of(dim3(4), dim3(32));
    CHECK(!needs_one_worker(launch));
    for (unsigned axis = 0; axis < 3; ++axis) {
        launch.cluster = dim3(axis == 0 ? 2 : 1, axis == 1 ? 2 : 1, axis == 2 ? 2 : 1);
        CHECK(!strcmp(needs_one_worker(launch), "it has clusters of blocks"));
    }
    launch.cluster = dim3(1);
    launch.programmatic = true;
    CHECK(!strcmp(needs_one_worker(launch), "there are several streams"));
    launch.programmatic = false;
    sim::Clock known = {};
    for (bool alone : {true, false}) {
        sim::Work work;
        work.call = "a copy";
        work.known = &known;
        work.alone = alone;
        work_begin(work, false);
        CHECK_EQUAL(needs_one_worker(launch) == nullptr, alone);
        work_begin({}, false);
        work_end();
    }
    for (const char* key : {"trace", "record"}) {
        CHECK_EQUAL(configure(key, *key == 't' ? "1" : "0,0,0,0"), 0);
        CHECK(!strcmp(needs_one_worker(launch), "what a block does is recorded"));
        CHECK_EQUAL(configure(key, *key == 't' ? "0" : "none"), 0);
        CHECK(!needs_one_worker(launch));
    }
}

CASE(setting_accepts_numbers_or_a_block_and_rejects_other_text) {
    CHECK_EQUAL(configure("max_findings", "2"), 0);
    forget_findings();
    for (unsigned i = 0; i < 4; ++i) not_its_own("host_memory", code, 4, true, code + i);
    CHECK(finding_count() == 2 && dropped_findings() == 2);
    CHECK_EQUAL(configure("max_findings", "1000"), 0);
    for (unsigned number : {12u, 254u, 255u, 256u, 3000u}) {
        char text[8];
        snprintf(text, sizeof text, "%u", number);
        CHECK_EQUAL(configure("trace", text), 0);
        CHECK_EQUAL(trace_limit, number < 255 ? number : 255);
    }
    CHECK_EQUAL(configure("trace", "0"), 0);
    for (const char* bad : {"", "x", "4x"})
        for (const char* key : {"max_findings", "trace", "record"}) CHECK_EQUAL(configure(key, bad), -1);
    CHECK_EQUAL(configure("color", "4"), -1);
    forget_findings();
}

CASE(launch_that_continues_with_one_worker_keeps_its_writes) {
    Floats x;
    Grid grid(1, 32);
    WorkerState& worker = *grid.thread(0, 0).worker;
    the_launch.concurrent = true;
    site_at(grid, 1).guarded = true;
    worker.overwritten.push({&x.cell(0), never, key(x.at(0)), 0, 0, 4});
    fall_back_to_one_worker();
    CHECK(!the_launch.concurrent && !site_at(grid, 1).guarded && worker.overwritten.empty());
}

CASE(rolled_back_launch_leaves_no_state) {
    forget_kernels();
    Floats x;
    Grid grid(2, 32);
    WorkerState& worker = *grid.thread(0, 0).worker;
    const Epoch before = x.cell(3).write;
    worker.overwritten.push({&x.cell(3), before, key(x.at(3)), 0x3f800000, 0, 4});
    x.cell(3).write = grid.thread(0, 0).epoch;
    size_t sites = the_launch.sites_before;
    const RunCounters counted = run_counters;
    add_to(run_counters.async_bytes, 64);
    add_to(run_counters.prefetched_bytes, 32);
    add_to(run_counters.early_bytes, 16);
    read(grid, x, 0, 0, 5);
    CHECK(site_count() > sites && !worker.touched.empty());
    size_t words = worker.sectors->words;
    worker.sectors->first[0] = worker.sectors->last[0] = 0;
    worker.known_barriers.at(8) = 1;
    SyncLog& log = new_log(code);
    CHECK(log_of(code) == &log);
    past_launches().back().number = 9;  // launches in a stream have numbers, so set one
    launch_rolled_back();
    CHECK(x.cell(3).write == before && *reinterpret_cast<float*>(x.at(3)) == 1);
    CHECK(worker.overwritten.empty() && worker.blocks.empty() && worker.touched.empty());
    CHECK(worker.known_barriers.size() == 0 && worker.sectors->first[0] == words);
    CHECK(!state_of(grid.block(0)) && !state_of(grid.block(1)) && !log_of(code));
    CHECK_EQUAL(site_count(), sites);
    CHECK(!memcmp(&counted, &run_counters, sizeof counted));
    CHECK(past_launches().back().number == 0 && !the_launch.launch);
    CHECK(kernel(0).launches == 0 && kernel(0).sites->empty());
    // The launch runs again, and its blocks get new serial numbers.
    uint32_t first = the_launch.first_serial;
    launch_begin(grid.launch());
    CHECK_EQUAL(the_launch.first_serial, first + 2);
    CHECK_EQUAL(worker.sites.find(code + 5)->limit, 0);
}

CASE(aborted_launch_drops_logs_and_ends_blocks) {
    forget_kernels();
    Floats x;
    {
        Grid grid(2, 32);
        WorkerState& worker = *grid.thread(0, 0).worker;
        read(grid, x, 0, 0, 9);
        read(grid, x, 1, 3, 10);
        worker.overwritten.push({&x.cell(0), never, key(x.at(0)), 0, 0, 4});
        worker.known_barriers.at(8) = 1;
        new_log(code);
        launch_end(grid.launch());
        CHECK(worker.touched.empty() && worker.blocks.empty() && !state_of(grid.block(1)));
        CHECK(worker.overwritten.empty() && worker.known_barriers.size() == 0 && !log_of(code));
        CHECK(kernel(0).sites->empty());
        launch_begin(grid.launch());
    }
    forget_kernels();
}

CASE(dynamic_buffer_is_known_in_each_launch) {
    for (unsigned turn = 0; turn < 2; ++turn) {
        Grid grid(2, 32);
        CHECK_EQUAL(the_launch.arrays.size(), 1);
        const SharedArray& array = the_launch.arrays[0];
        CHECK(!array.slot && array.bytes == unit::shared_bytes && !*array.name);
        CHECK(array.offset == static_cast<size_t>(grid.shared(0) - grid.block(0).shared));
        char name[80];
        memset(name, 'x', sizeof name);
        name[79] = 0;
        shared_array(code, 64, 8, name);
        shared_array(code, 64, 8, name);
        shared_array(code + 1, 128, 8, nullptr);
        CHECK_EQUAL(the_launch.arrays.size(), 3);
        const SharedArray &one = the_launch.arrays[1], &other = the_launch.arrays[2];
        CHECK(one.slot == code && one.offset == 64 && one.bytes == 8 && strlen(one.name) == 63 && !*other.name);
        CHECK(one.id >> 31 == 1 && other.id >> 31 == 1 && one.id != other.id);
        static uint32_t id;
        CHECK(turn == 0 || id == one.id);  // same id, so findings of several launches are merged
        id = one.id;
    }
}

CASE(exited_threads_are_reported_once_at_a_barrier) {
    Grid grid(1, 96);
    sim::Block& block = grid.block(0);
    sim::Thread& first = *grid.thread(0, 34).thread;
    first.call_address = code + 1;
    first.wait_site.line = 12;
    const unsigned lanes[sim::max_warps_per_block] = {0, ~0u << 2, ~0u};
    for (unsigned w = 0; w < 3; ++w) grid.warp(0, w).at_barrier[0].waiting = lanes[w];
    block.live = 62;
    for (unsigned turn = 0; turn < 2; ++turn) {
        barrier(block, 0, lanes);
        CHECK(is("barrier_after_exit") && check_of(finding(0).kind) == Check::synccheck && finding(0).count == 1);
        CHECK(unit::number_in(finding(0)) == 34 && unit::number_in(finding(0), 1) == 96);
        CHECK(finding(0).side.address == code + 1 && finding(0).side.line == 12 && finding(0).side.thread == 34);
        CHECK_EQUAL(the_launch.barriers, turn + 1);
        CHECK_EQUAL(*the_launch.barriers_at.find(key(code + 1)), turn + 1);
    }
    CHECK(state_of(block)->exit_reported && the_launch.barriers_at.size() == 1);
    // There is no finding if all threads have arrived, or if the barrier is a named one.
    forget_findings();
    state_of(block)->exit_reported = false;
    barrier(block, 1, lanes);
    for (unsigned w = 0; w < 3; ++w) grid.warp(0, w).at_barrier[1].waiting = lanes[w];
    barrier(block, 1, lanes);
    CHECK_EQUAL(finding_count(), 0);
    block.live = 96;
    grid.syncthreads(0);
    CHECK_EQUAL(finding_count(), 0);
}

CASE(warps_of_an_earlier_larger_block_are_not_in_the_barrier) {
    Grid grid(1, 64);
    grid.warp(0, 2).at_barrier[0].waiting = grid.warp(0, 2).existing = 1;
    unsigned lanes[sim::max_warps_per_block] = {~0u, ~0u};
    for (unsigned w : {0u, 1u}) grid.warp(0, w).at_barrier[0].waiting = ~0u;
    barrier(grid.block(0), 0, lanes);
    CHECK(!state_of(grid.block(0))->exact && state_of(grid.block(0))->barrier_time == 2);
}

CASE(barrier_counts_accesses_of_its_threads) {
    Floats x;
    Grid grid(1, 96);
    auto access = [&] {
        for (unsigned w : {0u, 1u, 2u}) read(grid, x, 0, 32 * w + 5, w);
    };
    access();
    grid.meet(0, 1, {1});
    CHECK(requests(grid, 0) == 0 && requests(grid, 1) == 1 && requests(grid, 2) == 0);
    grid.meet(0, 1, {0, 2});
    CHECK(requests(grid, 0) == 1 && requests(grid, 1) == 1 && requests(grid, 2) == 1);
    access();
    unsigned lanes[sim::max_warps_per_block] = {~0u, 0xffff};  // all lanes of warp 0, half of warp 1
    for (unsigned w : {0u, 1u}) grid.warp(0, w).at_barrier[2].waiting = lanes[w];
    barrier(grid.block(0), 2, lanes);
    CHECK(requests(grid, 0) == 2 && requests(grid, 1) == 1);
    grid.syncthreads(0);
    for (unsigned w : {0u, 1u, 2u}) CHECK_EQUAL(requests(grid, w), 2);
    access();
    grid.sync_grid();
    for (unsigned w : {0u, 1u, 2u}) CHECK_EQUAL(requests(grid, w), 3);
}

CASE(syncwarp_of_all_live_lanes_counts_their_accesses) {
    Floats x;
    Grid grid(1, 64);
    grid.warp(0, 0).exited = 1u << 3;
    uint64_t counted = 0;
    for (bool memory : {true, false}) {
        auto meet = [&](unsigned lanes) {
            read(grid, x, 0, 5, 0);
            read(grid, x, 0, 37, 1);
            warp_collective(grid.warp(0, 0), lanes, memory);
            return requests(grid, 0);
        };
        CHECK_EQUAL(meet(0xf0), counted);
        CHECK_EQUAL(meet(~0u), counted);  // one of the threads has exited
        CHECK_EQUAL(meet(~(1u << 3)), counted + 3);
        CHECK_EQUAL(requests(grid, 1), 0);
        counted += 3;
    }
}

CASE(end_of_a_block_counts_its_accesses) {
    Floats x;
    Grid grid(2, 32);
    read(grid, x, 0, 5, 0);
    read(grid, x, 1, 5, 1);
    block_end(grid.block(1));
    CHECK(requests(grid, 0) == 0 && requests(grid, 1) == 1);
}

CASE(cluster_barrier_counts_accesses_of_each_block) {
    Floats x;
    Grid grid(2, 64, 2);
    for (unsigned b : {0u, 1u}) {
        read(grid, x, b, 5, b);
        for (unsigned t = 0; t < 64; ++t) {
            grid.thread(b, t).thread->call_address = code + 10 + t / 32;
            grid.arrive_at_cluster(b, t);
        }
        grid.warp(b, 0).at_barrier[sim::cluster_number].arrived = b ? ~0u : 0;
        grid.warp(b, 1).at_barrier[sim::cluster_number].arrived = ~0u;
    }
    CHECK(requests(grid, 0) == 0 && requests(grid, 1) == 0);
    grid.complete_cluster(0);
    CHECK(requests(grid, 0) == 1 && requests(grid, 1) == 1);
    CHECK(the_launch.barriers == 2 && *the_launch.barriers_at.find(key(code + 10)) == 1);
    CHECK_EQUAL(*the_launch.barriers_at.find(key(code + 11)), 1);
}

CASE(pending_write_is_settled_before_the_next_event) {
    using Event = void (*)(Grid&, sim::Thread&);
    const Event all[] = {
        [](Grid& grid, sim::Thread&) { grid.syncthreads(0); },
        [](Grid& grid, sim::Thread&) { grid.syncwarp(0, 1); },
        [](Grid& grid, sim::Thread&) { warp_collective(grid.warp(0, 1), 1u << 1, false); },
        [](Grid&, sim::Thread& thread) { barrier_arrive(thread, 1); },
        [](Grid&, sim::Thread& thread) { cluster_arrive(thread, true); },
        [](Grid&, sim::Thread& thread) { cluster_waited(thread); },
        [](Grid&, sim::Thread& thread) { grid_dependency_waited(thread); },
        [](Grid&, sim::Thread& thread) { fence(thread, Scope::block); },
        [](Grid& grid, sim::Thread&) { grid.sync_grid(); },
        [](Grid&, sim::Thread& thread) { thread_exit(thread); },
    };
    for (Event event : all) {
        Floats x;
        Grid grid(2, 64, 2);
        x.write(grid.thread(0, 0), 2);
        ThreadState& thread = grid.thread(0, 33);
        on_access<2, true>(thread, key(x.at(2)), code);
        *x.at(2) += 1;
        CHECK(thread.pending && finding_count() == 0);
        event(grid, *thread.thread);
        CHECK(is("within_block") && !thread.pending);
    }
}

CASE(grid_barrier_settles_only_existing_threads) {
    {
        Grid larger(1, 64);
    }
    Grid grid(1, 40);
    grid.warp(0, 0).exited = 1u << 6;
    BlockState& block = *state_of(grid.block(0));
    extras_of(grid.thread(0, 0));
    const unsigned threads[] = {5, 6, 39, 40, 63};
    for (unsigned thread : threads) {
        block.threads[thread].extras = nullptr;
        block.threads[thread].pending = true;
    }
    grid.sync_grid();
    for (unsigned thread : threads) {
        CHECK_EQUAL(block.threads[thread].pending, thread == 6 || thread > 39);
        block.threads[thread].pending = false;
    }
}

CASE(griddepcontrol_wait_orders_after_the_previous_grid) {
    Grid grid(1, 32);
    ThreadState& thread = grid.thread(0, 4);
    const uint32_t open = the_launch.open_serial;
    the_launch.open_serial = 100;
    the_launch.overlap_first = 60;
    the_launch.overlap_serials = 5;
    set_floors(thread);
    CHECK(thread.floors[global_window].end() == Epoch(60, 0) && !thread.awaited);
    grid_dependency_waited(*thread.thread);
    CHECK(thread.floors[global_window].end() == Epoch(100, 0) && thread.awaited);
    the_launch.overlap_serials = 0;
    the_launch.open_serial = open;
}

CASE(mma_operations_are_counted_by_type_and_line) {
    Grid grid(1, 32);
    for (unsigned turn = 1; turn < 3; ++turn) {
        tensor_core_mma(static_cast<sim::TensorType>(1), 4096, code + 6);
        CHECK(the_launch.tensor_operations[1] == 4096 * turn && the_launch.tensor_operations[0] == 0);
        CHECK_EQUAL(*the_launch.tensor_operations_at.find(key(code + 6)), 4096 * turn);
    }
}

CASE(atomic_operation_that_reads_needs_an_initialized_value) {
    const struct {
        AtomicOp op;
        bool reads;
    } kinds[] = {{AtomicOp::add, true},    {AtomicOp::compare_and_swap, true}, {AtomicOp::load, true},
                 {AtomicOp::store, false}, {AtomicOp::exchange, false},        {AtomicOp::decrement, true}};
    for (auto& kind : kinds) {
        Floats x(false);
        Grid grid(1, 32);
        sim::Thread& thread = *grid.thread(0, 0).thread;
        atomic(thread, x.at(2), 4, kind.op, Scope::device, code);
        CHECK_EQUAL(finding_count(), kind.reads);
        CHECK(!kind.reads || !strncmp(name_of(finding(0).kind), "uninitialized", 13));
        CHECK(x.cell(2).reads.atomic() && x.cell(1).reads == never && x.cell(3).reads == never);
        forget_findings();
        atomic(thread, x.at(4), 8, kind.op, Scope::device, code + 1);
        CHECK(x.cell(4).reads.atomic() && x.cell(5).reads.atomic() && x.cell(6).reads == never);
    }
}

CASE(atomic_operation_synchronizes_within_its_scope) {
    for (unsigned cluster : {1u, 2u})
        for (Scope scope : {Scope::block, Scope::cluster, Scope::device, Scope::system}) {
            Floats x;
            Grid grid(2, 32, cluster);
            ThreadState& thread = grid.thread(0, 0);
            atomic(*thread.thread, x.at(0), 4, AtomicOp::add, scope, code);
            bool block = scope == Scope::block || (scope == Scope::cluster && cluster == 1);
            CHECK_EQUAL(x.cell(0).second.block_scope(), block);
            // Block scope is sufficient in shared memory that no other block can access.
            atomic(*thread.thread, grid.shared(0), 4, AtomicOp::exchange, scope, code + 1);
            Region& region = *find_shared(*thread.block, key(grid.shared(0)));
            CHECK_EQUAL(region.cells[0].second.block_scope(), cluster == 2 && scope == Scope::block);
        }
}

CASE(atomic_operation_releases_and_acquires_by_its_order) {
    const struct {
        AtomicOp op;
        bool changed, publishes, takes;
    } kinds[] = {{AtomicOp::add, true, true, true},
                 {AtomicOp::add, false, true, true},
                 {AtomicOp::load, false, false, true},
                 {AtomicOp::load, true, false, true},
                 {AtomicOp::store, true, true, false},
                 {AtomicOp::exchange, false, true, true},
                 {AtomicOp::compare_and_swap, true, true, true},
                 {AtomicOp::compare_and_swap, false, false, true}};
    for (auto& kind : kinds) {
        Floats x;
        Grid grid(2, 32);
        ThreadState &one = grid.thread(0, 0), &other = grid.thread(1, 0);
        fence(*one.thread, Scope::device);
        CHECK(!log_of(x.at(0)));
        atomic_done(*one.thread, x.at(0), kind.op, Scope::device, sim::MemoryOrder::relaxed, kind.publishes,
                    kind.changed);
        CHECK_EQUAL(log_of(x.at(0)) != nullptr, kind.publishes);
        release(one, x.at(0));
        atomic_done(*other.thread, x.at(0), kind.op, Scope::device, sim::MemoryOrder::relaxed, false, false);
        CHECK_EQUAL(other.extras && other.extras->acquired, kind.takes);
    }
}

CASE(cluster_fence_in_a_cluster_of_one_block_is_a_block_fence) {
    for (unsigned cluster : {1u, 2u})
        for (Scope scope : {Scope::block, Scope::cluster, Scope::device}) {
            Grid grid(2, 32, cluster);
            ThreadState& thread = grid.thread(0, 0);
            fence(*thread.thread, scope);
            bool block = scope == Scope::block || (scope == Scope::cluster && cluster == 1);
            unsigned reach = block ? 0 : scope == Scope::cluster ? 1 : 2;
            for (unsigned i = 0; i < 3; ++i) CHECK_EQUAL(thread.extras->released[i] != nullptr, i == reach);
        }
}

CASE(memory_is_known_from_allocation_to_free) {
    alignas(32) static char memory[256];
    for (MemoryKind kind : {MemoryKind::device, MemoryKind::managed, MemoryKind::async}) {
        reset();
        Allocation made = {kind, memory, 64, nullptr, nullptr, 0, nullptr, code};
        allocation(made);
        Region* region = find_region(key(memory));
        CHECK(region && region->bytes == 64 && region->allocated_at == code && !region->allocated_serial);
        CHECK_EQUAL(host_view.shares, kind == MemoryKind::managed);
        CHECK_EQUAL(scratch_bytes(), 64);
        made.base += 128;
        made.kind = MemoryKind::device;
        allocation(made);
        CHECK_EQUAL(host_view.shares, kind == MemoryKind::managed);  // unchanged by the allocation
        CHECK_EQUAL(scratch_bytes(), 128);
        release(memory + 128, code + 1);
        CHECK(find_region(key(memory)) && !find_region(key(memory + 128)));
        made.base += 64;
        allocation(made);
        CHECK_EQUAL(scratch_bytes(), 128);  // the peak has not increased
        host_write(memory, 64);
        CHECK(region->initialized);
    }
    reset();
}

CASE(inputs_and_outputs_are_marked) {
    Floats x(false);
    Region& region = *find_region(key(x.at(0)));
    expect_output(x.at(0));
    CHECK(region.expected && !region.read_only);
    read_only(x.at(0));
    CHECK(region.read_only && !region.cells);
}

CASE(new_report_forgets_all_state) {
    alignas(32) static char memory[64];
    {
        Grid grid(1, 32);
        CHECK_EQUAL(unit::as_thread(grid.thread(0, 0), [] {}), 0);
        allocation({MemoryKind::managed, memory, 64, nullptr, nullptr, 0, nullptr, code});
        host_write(memory, 32);
        on_access<2, false>(grid.thread(0, 0), key(memory), code);
        not_its_own("host_memory", code, 4, true, code);
        executed_code().push({code, 0, 1, 1, 1});
        run_counters.host_bytes += 8;
        traces.push({});
        submitted();
        graph_instantiated();
        recording.done = true;
    }
    CHECK(finding_count() && kernel_count() && scratch_bytes() && run_counters.host_bytes && run_counters.submissions &&
          run_counters.graphs);
    CHECK(site_count() && past_launches().size() && host_view.shares);
    WorkerState& worker = [&]() -> WorkerState& {
        Grid grid(1, 32);
        return *grid.thread(0, 0).worker;
    }();
    reset();
    CHECK(!finding_count() && !kernel_count() && !scratch_bytes() && !run_counters.host_bytes &&
          !run_counters.submissions && !run_counters.graphs);
    CHECK(!site_count() && past_launches().empty() && !host_view.shares && !host_view.arena_bytes);
    CHECK(executed_code().empty() && traces.empty() && !find_region(key(memory)) && !recording.done);
    unsigned sites = 0;
    worker.sites.each([&](AccessSite&) { ++sites; });
    CHECK_EQUAL(sites, 0);
}

CASE(last_writer_of_a_value_is_found) {
    Floats x;
    unsigned names[6] = {};
    CHECK(!writer(code, names) && !writer(x.at(1), names));  // `code` is no device memory; the host wrote x[1]
    Grid grid(3, 64);
    x.write(grid.thread(2, 40), 1);
    CHECK(writer(x.at(1), names) && names[0] == 2 && names[3] == 40 && !writer(x.at(2), names));
    CHECK(!names[1] && !names[2] && !names[4] && !names[5]);
    x.atomic(grid.thread(1, 7), 1);
    CHECK(writer(x.at(1), names) && names[0] == 2 && names[3] == 40);  // the block with the later serial is named
    grid.sync_grid();
    x.atomic(grid.thread(1, 7), 1);
    CHECK(writer(x.at(1), names) && names[0] == 1 && names[3] == 7);
    grid.sync_grid();
    x.read(grid.thread(0, 3), 1);
    x.read(grid.thread(0, 3), 2);
    x.write(grid.thread(0, 3), 1);
    CHECK(writer(x.at(1), names) && names[0] == 0 && names[3] == 3 && !writer(x.at(2), names));
    Region& region = *find_region(key(x.at(0)));
    ShadowCell* cells = region.cells;
    region.cells = nullptr;
    CHECK(!writer(x.at(1), names));
    region.cells = cells;
}

CASE(last_writer_in_the_first_block_is_found) {
    the_launch.first_serial = Epoch::serial_limit;
    sim::Launch launch = launch_of(dim3(3), dim3(32));
    end_serials();  // all serial numbers are used, so they restart
    launch_begin(launch);
    CHECK_EQUAL(the_launch.first_serial, 1);
    Floats x;
    unsigned names[6] = {};
    x.cell(0).write = Epoch(1, 1, 5);
    CHECK(writer(x.at(0), names) && names[0] == 0 && names[3] == 5);
    launch_end(launch);
}
