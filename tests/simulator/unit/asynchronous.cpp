// Tests of asynchronous copies and mbarriers: the order that they establish between accesses.
#include "checks/counting/counting.h"
#include "checks/asynchronous/mbarriers.h"
#include "checks/report/recording.h"
#include "runtime/async_operations.h"

#include "found.h"
#include "grid.h"
#include "unit.h"

using namespace sim::checks;
using namespace sim::events;
using unit::Floats;
using unit::Grid;

namespace {

const char code[512] = {};  // addresses in it stand for instructions of a kernel

bool found(const char* kind) {
    for (size_t i = 0; i < finding_count(); ++i)
        if (!strcmp(name_of(finding(i).kind), kind)) return true;
    return false;
}

void write(ThreadState& thread, char* at, const void* place = code) {
    on_access<2, true>(thread, reinterpret_cast<uintptr_t>(at), place);
    ++*at;
    if (thread.pending) settle(thread, 0, nullptr);
}
void read(ThreadState& thread, char* at, const void* place = code + 1) {
    on_access<2, false>(thread, reinterpret_cast<uintptr_t>(at), place);
}

// Writes four floats and executes a proxy fence, which makes them visible to the copy engine.
void fill(ThreadState& thread, char* at) {
    for (unsigned i = 0; i < 4; ++i) write(thread, at + 4 * i);
    proxy_fence(*thread.thread);
}
void copy(ThreadState& thread, char* shared, char* global, const void* place = code + 2) {
    async_copy(*thread.thread, shared, global, 16, 0, sim::CacheOperator::cg, place);
}
void store(ThreadState& thread, char* shared, char* global, const void* place = code + 3) {
    bulk_store(*thread.thread, sim::run_of_bytes(shared, global, 16), place);
    bulk_commit(*thread.thread);
}

// A cluster barrier of all threads, in two blocks of 32 threads.
void meet(Grid& grid) {
    for (unsigned i = 0; i < 64; ++i) grid.arrive_at_cluster(i / 32, i % 32);
    grid.complete_cluster(0);
    for (unsigned i = 0; i < 64; ++i) grid.wait_for_cluster(i / 32, i % 32);
}

// An mbarrier in a block's shared memory, after all other objects.
struct Barrier : sim::Mbarrier {
    Barrier(Grid& grid, ThreadState& first) : Mbarrier() {
        block = &grid.block(first.thread->block->rank);
        object = block->dynamic_shared + 1024;
        mbarrier_begin(*first.thread, *this, code + 4);
    }
    ~Barrier() { mbarrier_end(nullptr, *this, nullptr); }
    void arrive(ThreadState& thread) { mbarrier_arrive(*thread.thread, *this, true, code + 5); }
    void complete() { mbarrier_complete(*this); }
    void wait(ThreadState& thread, bool acquires = true) { mbarrier_waited(*thread.thread, *this, acquires); }
};

}  // namespace

// --- copies by each thread (cp.async) ---

CASE(wait_group_completes_older_copy_groups_and_not_newer_ones) {
    for (unsigned pieces : {1u, 2u}) {
        for (unsigned may_pend : {0u, 1u, 2u}) {
            Grid grid(1, 32);
            Floats x;
            ThreadState& thread = grid.thread(0, 0);
            uint64_t ahead = run_counters.prefetched_bytes;
            for (unsigned i = 0; i < 3 * pieces; ++i) {
                copy(thread, grid.shared(0) + 16 * i, x.at(0));
                if (i % pieces == pieces - 1) async_commit(*thread.thread);
            }
            async_wait(*thread.thread, 2);
            CHECK_EQUAL(run_counters.prefetched_bytes - ahead, 2 * pieces * 16);
            async_wait(*thread.thread, may_pend);
            CHECK_EQUAL(run_counters.prefetched_bytes - ahead, 2 * pieces * 16);  // the second wait changes no counter
            for (unsigned i = 0; i < (3 - may_pend) * pieces; ++i) read(thread, grid.shared(0) + 16 * i + 12);
            CHECK_FOUND("nothing");
            for (unsigned i = (3 - may_pend) * pieces; i < 3 * pieces; ++i) {
                sim::checks::forget_findings();
                read(thread, grid.shared(0) + 16 * i);
                CHECK_FOUND("copy_not_awaited");
            }
        }
    }
}

CASE(cp_async_reads_only_the_bytes_that_it_does_not_zero_fill) {
    for (unsigned zeros : {4u, 8u}) {
        Grid grid(1, 64);
        Floats x;
        x.write(grid.thread(0, 40), 2);
        async_copy(*grid.thread(0, 0).thread, grid.shared(0), x.at(0), 16, zeros, sim::CacheOperator::cg, code);
        CHECK_FOUND(zeros == 4 ? "within_block" : "nothing");
    }
}

// --- bulk stores ---

CASE(bulk_store_is_ordered_after_writes_before_a_barrier) {
    for (bool meets : {false, true}) {
        Grid grid(1, 64);
        Floats x;
        fill(grid.thread(0, 40), grid.shared(0));
        if (meets) grid.syncthreads(0);
        store(grid.thread(0, 0), grid.shared(0), x.at(0));
        CHECK_EQUAL(found("within_block"), !meets);
        CHECK_EQUAL(found("missing_proxy_fence"), !meets);
    }
}

CASE(only_threads_ordered_after_the_wait_know_that_a_bulk_store_is_complete) {
    for (bool meets : {false, true}) {
        Grid grid(1, 64);
        Floats x;
        ThreadState& thread = grid.thread(0, 0);
        fill(thread, grid.shared(0));
        store(thread, grid.shared(0), x.at(0));
        bulk_wait(*thread.thread, 0, false);
        x.read(thread, 0);
        if (meets) grid.syncthreads(0);
        x.read(grid.thread(0, 40), 1);
        CHECK_FOUND(meets ? "nothing" : "copy_not_awaited");
    }
}

CASE(bulk_wait_group_completes_older_stores_and_not_newer_ones) {
    for (bool reads_only : {false, true}) {
        for (unsigned may_pend : {0u, 1u, 2u}) {
            Grid grid(1, 32);
            Floats x;
            ThreadState& thread = grid.thread(0, 0);
            for (unsigned i = 0; i < 3; ++i) {
                fill(thread, grid.shared(0) + 16 * i);
                store(thread, grid.shared(0) + 16 * i, x.at(4 * i));
            }
            bulk_wait(*thread.thread, 2, false);
            bulk_wait(*thread.thread, may_pend, reads_only);
            for (unsigned i = 0; i < 3; ++i) {
                sim::checks::forget_findings();
                write(thread, grid.shared(0) + 16 * i);
                CHECK_FOUND(i < 3 - may_pend ? "nothing" : "copy_not_awaited");
                sim::checks::forget_findings();
                x.read(thread, 4 * i + 3);
                CHECK_FOUND(i < (reads_only ? 1 : 3 - may_pend) ? "nothing" : "copy_not_awaited");
            }
            bulk_wait(*thread.thread, 0, false);
            sim::checks::forget_findings();
            for (unsigned i = 0; i < 3; ++i) x.write(thread, 4 * i);
            CHECK_FOUND("nothing");
        }
    }
}

CASE(bulk_store_without_a_wait_is_reported_at_exit) {
    for (bool waits : {false, true}) {
        Grid grid(1, 64);
        Floats x;
        ThreadState& thread = grid.thread(0, 33);
        fill(thread, grid.shared(0));
        store(thread, grid.shared(0), x.at(0));
        if (waits) bulk_wait(*thread.thread, 0, true);
        copies_at_exit(grid.block(0));
        CHECK_FOUND(waits ? "nothing" : "copy_at_exit");
        CHECK(waits || (finding(0).side.thread == 33 && finding(0).side.address == code + 3));
    }
}

// --- visibility to the copy engine ---

CASE(proxy_fence_after_the_write_makes_it_visible_to_bulk_copies) {
    enum { before_it, after_it, by_the_reader, by_nobody };
    for (int when : {before_it, after_it, by_the_reader, by_nobody}) {
        Grid grid(1, 64);
        Floats x;
        ThreadState &writer = grid.thread(0, 40), &reader = grid.thread(0, 0);
        if (when == before_it) proxy_fence(*writer.thread);
        for (unsigned i = 0; i < 4; ++i) write(writer, grid.shared(0) + 4 * i);
        if (when == after_it) proxy_fence(*writer.thread);
        grid.syncthreads(0);
        if (when == by_the_reader) proxy_fence(*reader.thread);
        store(reader, grid.shared(0), x.at(0));
        CHECK_FOUND(when == after_it || when == by_the_reader ? "nothing" : "missing_proxy_fence");
    }
}

// __syncwarp orders a write of the reader's warp before the read. An mbarrier orders a write of another warp.
CASE(proxy_fence_by_the_reader_covers_the_writes_that_it_is_ordered_after) {
    for (unsigned writer : {9u, 40u}) {
        for (bool fenced_late : {false, true}) {
            Grid grid(1, 64);
            Floats x;
            ThreadState& reader = grid.thread(0, 0);
            Barrier barrier(grid, grid.thread(0, 1));
            grid.syncthreads(0);
            if (!fenced_late) proxy_fence(*reader.thread);
            for (unsigned i = 0; i < 4; ++i) write(grid.thread(0, writer), grid.shared(0) + 4 * i);
            if (writer == 9) grid.syncwarp(0, 0);
            if (writer == 40) barrier.arrive(grid.thread(0, writer)), barrier.complete(), barrier.wait(reader);
            if (fenced_late) proxy_fence(*reader.thread);
            store(reader, grid.shared(0), x.at(0));
            CHECK_FOUND(fenced_late ? "nothing" : "missing_proxy_fence");
        }
    }
}

// --- mbarriers ---

CASE(mbarrier_phase_orders_accesses_before_the_arrival) {
    enum { before_it, after_it, not_released };
    for (int when : {before_it, after_it, not_released}) {
        Grid grid(1, 64);
        Floats x;
        Barrier barrier(grid, grid.thread(0, 0));
        grid.syncthreads(0);
        if (when != after_it) x.write(grid.thread(0, 5), 0);
        mbarrier_arrive(*grid.thread(0, 5).thread, barrier, when != not_released, code);
        if (when == after_it) x.write(grid.thread(0, 5), 0);
        barrier.complete();
        barrier.wait(grid.thread(0, 40));
        x.read(grid.thread(0, 40), 0);
        CHECK_FOUND(when == before_it ? "nothing" : "within_block");
        x.read(grid.thread(0, 41), 0);  // this thread has not waited
        CHECK(found("within_block"));
    }
}

CASE(mbarrier_wait_without_acquire_orders_nothing) {
    Grid grid(1, 64);
    Floats x;
    Barrier barrier(grid, grid.thread(0, 0));
    grid.syncthreads(0);
    x.write(grid.thread(0, 5), 0);
    barrier.arrive(grid.thread(0, 5));
    barrier.complete();
    barrier.wait(grid.thread(0, 40), false);
    x.read(grid.thread(0, 40), 0);
    CHECK_FOUND("within_block");
}

CASE(mbarrier_arrival_publishes_accesses_of_the_warp_before_syncwarp) {
    const struct {
        unsigned writer;
        const char* kind;
    } cases[] = {{0, "nothing"}, {31, "nothing"}, {32, "within_block"}};
    for (auto& one : cases) {
        Grid grid(1, 96);
        Floats x;
        Barrier barrier(grid, grid.thread(0, 1));
        grid.syncthreads(0);
        barrier.arrive(grid.thread(0, 33));
        x.write(grid.thread(0, one.writer), 0);
        for (unsigned i = 0; i < 3; ++i) grid.syncwarp(0, 0);
        barrier.arrive(grid.thread(0, 5));
        barrier.complete();
        barrier.wait(grid.thread(0, 70));
        x.read(grid.thread(0, 70), 0);
        CHECK_FOUND(one.kind);
    }
}

CASE(mbarrier_use_before_ordered_initialization_is_a_race) {
    for (bool meets : {false, true}) {
        for (int how = 0; how < 4; ++how) {
            Grid grid(1, 64);
            Floats x;
            Barrier barrier(grid, grid.thread(0, 0));
            if (meets) grid.syncthreads(0);
            sim::Thread& thread = *grid.thread(0, 40).thread;
            if (how == 0) mbarrier_arrive(thread, barrier, true, code);
            if (how == 1) async_arrive(thread, barrier, 1, code);
            if (how == 2) bulk_load(thread, sim::run_of_bytes(grid.shared(0), x.at(0), 16), true, barrier, 1, code);
            if (how == 3) barrier.wait(grid.thread(0, 40));
            CHECK_FOUND(meets ? "nothing" : "within_block");
        }
    }
}

// cp.async's arrival counts for a later phase than the phase that the other threads' arrivals complete.
CASE(cp_async_mbarrier_arrive_publishes_when_the_copies_are_done) {
    for (bool done : {false, true}) {
        Grid grid(1, 96);
        Floats x;
        Barrier barrier(grid, grid.thread(0, 1));
        grid.syncthreads(0);
        x.write(grid.thread(0, 0), 0);
        async_arrive(*grid.thread(0, 0).thread, barrier, 1, code);
        barrier.arrive(grid.thread(0, 1));
        barrier.complete();
        barrier.wait(grid.thread(0, 40));
        if (done) mbarrier_operation_done(*grid.thread(0, 0).thread, barrier, 1);
        barrier.arrive(grid.thread(0, 1));
        barrier.complete();
        barrier.wait(grid.thread(0, 70));
        x.read(grid.thread(0, 70), 0);
        CHECK_FOUND(done ? "nothing" : "within_block");
    }
}

CASE(cp_async_copies_complete_at_an_mbarrier) {
    for (bool done : {false, true}) {
        Grid grid(1, 64);
        Floats x;
        Barrier barrier(grid, grid.thread(0, 1));
        grid.syncthreads(0);
        ThreadState& thread = grid.thread(0, 0);
        copy(thread, grid.shared(0), x.at(0));
        copy(thread, grid.shared(0) + 16, x.at(0));
        async_arrive(*thread.thread, barrier, 1, code);
        copy(thread, grid.shared(0) + 32, x.at(0));  // started after the arrival, which does not track it
        barrier.arrive(grid.thread(0, 1));
        if (done) mbarrier_operation_done(*thread.thread, barrier, 1);
        barrier.complete();
        barrier.wait(grid.thread(0, 40));
        read(grid.thread(0, 40), grid.shared(0) + 28);
        CHECK_FOUND(done ? "nothing" : "copy_not_awaited");
        sim::checks::forget_findings();
        read(grid.thread(0, 40), grid.shared(0) + 32);
        CHECK_FOUND("copy_not_awaited");
        async_commit(*thread.thread);
        async_wait(*thread.thread, 0);
        sim::checks::forget_findings();
        read(thread, grid.shared(0) + 32);
        CHECK_FOUND("nothing");
    }
}

CASE(bulk_load_completes_at_an_mbarrier) {
    enum { waits, meets_who_waited, does_not_wait };
    for (int how : {waits, meets_who_waited, does_not_wait}) {
        Grid grid(1, 64);
        Floats x;
        Barrier barrier(grid, grid.thread(0, 1));
        grid.syncthreads(0);
        ThreadState& thread = grid.thread(0, 0);
        bulk_load(*thread.thread, sim::run_of_bytes(grid.shared(0), x.at(0), 16), true, barrier, 1, code + 6);
        barrier.arrive(thread);
        mbarrier_operation_done(*thread.thread, barrier, 1);
        barrier.complete();
        if (how != does_not_wait) barrier.wait(grid.thread(0, 5));
        if (how == meets_who_waited) grid.syncthreads(0);
        read(grid.thread(0, how == waits ? 5 : 40), grid.shared(0));
        CHECK_FOUND(how == does_not_wait ? "copy_not_awaited" : "nothing");
        read(grid.thread(0, 41), grid.shared(0) + 4);  // only the block's barrier orders this read
        CHECK_EQUAL(found("copy_not_awaited"), how != meets_who_waited);
    }
}

// Block `from` copies its shared memory to the other block. It must not exit before the copy has read its memory.
CASE(copy_to_another_block_ends_before_its_source_block) {
    for (unsigned from : {0u, 1u}) {
        for (bool awaited : {false, true}) {
            Grid grid(2, 32, 2);
            sim::Block &source = grid.block(from), &target = grid.block(1 - from);
            ThreadState &sender = grid.thread(from, 0), &receiver = grid.thread(1 - from, 0);
            Barrier barrier(grid, receiver);
            target.mbarriers = &barrier;
            meet(grid);
            fill(sender, source.dynamic_shared);
            auto copy = sim::run_of_bytes(target.dynamic_shared, source.dynamic_shared, 16);
            bulk_load(*sender.thread, copy, true, barrier, 1, code + 6);
            if (awaited) {
                barrier.arrive(receiver);
                mbarrier_operation_done(*sender.thread, barrier, 1);
                barrier.complete();
                barrier.wait(receiver);
            }
            sim::checks::forget_findings();
            copies_at_exit(source);
            CHECK_EQUAL(found("copy_at_exit"), !awaited);
            target.mbarriers = nullptr;
        }
    }
}

CASE(thread_of_another_block_publishes_to_waiting_threads) {
    for (bool arrives : {false, true}) {
        Grid grid(2, 32, 2);
        Floats x;
        Barrier barrier(grid, grid.thread(0, 0));
        meet(grid);
        x.write(grid.thread(1, 3), 0);
        barrier.arrive(grid.thread(arrives ? 1 : 0, arrives ? 3 : 1));
        x.write(grid.thread(1, 3), 1);
        barrier.complete();
        barrier.wait(grid.thread(0, 5));
        x.read(grid.thread(0, 5), 0);
        CHECK_FOUND(arrives ? "nothing" : "within_cluster");
        x.read(grid.thread(0, 5), 1);
        CHECK(found("within_cluster"));
    }
}

CASE(all_waiters_learn_what_one_arrived_thread_has_waited_for) {
    Grid grid(1, 64);
    Barrier barrier(grid, grid.thread(0, 0));
    grid.syncthreads(0);
    barrier.wait(grid.thread(0, 40));  // this phase completed before a grid-wide barrier
    CHECK(!grid.thread(0, 40).awaited);
    barrier.arrive(grid.thread(0, 2));
    barrier.complete();
    barrier.wait(grid.thread(0, 40));
    CHECK(!grid.thread(0, 40).awaited);
    grid.thread(0, 3).awaited = true;
    barrier.arrive(grid.thread(0, 3));
    barrier.wait(grid.thread(0, 40));
    CHECK(!grid.thread(0, 40).awaited);
    barrier.complete();
    barrier.wait(grid.thread(0, 40));
    CHECK(grid.thread(0, 40).awaited && !grid.thread(0, 41).awaited);
}

// --- recording ---

CASE(recording_lists_asynchronous_operations) {
    sim::checks::forget_recording();
    CHECK(choose_recorded("0,0,0,0"));
    {
        Grid grid(1, 32);
        Floats x;
        ThreadState& thread = grid.thread(0, 0);
        char* shared = grid.shared(0);
        Barrier barrier(grid, thread);
        copy(thread, shared, x.at(0));
        async_commit(*thread.thread);
        async_wait(*thread.thread, 3);
        async_wait(*thread.thread, 0);
        proxy_fence(*thread.thread);
        store(thread, shared, x.at(0));
        bulk_wait(*thread.thread, 2, true);
        copy(thread, shared + 32, x.at(0));
        async_arrive(*thread.thread, barrier, 7, code);
        bulk_load(*thread.thread, sim::run_of_bytes(shared + 64, x.at(0), 32), true, barrier, 8, code);
        barrier.arrive(thread);
        mbarrier_waits(*thread.thread, barrier);
        mbarrier_operation_done(*thread.thread, barrier, 7);
        mbarrier_operation_done(*thread.thread, barrier, 8);
        barrier.complete();
        barrier.wait(thread);
    }
    struct Expected {
        EventKind kind;
        uint32_t bytes;
        int64_t offset;
    };
    const int64_t begin = 256 << 10, object = begin + 1024;
    const Expected expected[] = {
        {EventKind::mbarrier_init, 8, object},
        {EventKind::cp_async_commit, 0, 0},
        {EventKind::cp_async_wait, 0, 3},
        {EventKind::cp_async_wait, 0, 0},
        {EventKind::copy_complete, 16, begin},
        {EventKind::bulk_read, 16, begin},
        {EventKind::bulk_write, 16, 0},
        {EventKind::cp_async_commit, 0, 0},
        {EventKind::cp_async_wait, 0, 2},
        {EventKind::mbarrier_arrive, 8, object},
        {EventKind::bulk_read, 32, 0},
        {EventKind::bulk_write, 32, begin + 64},
        {EventKind::mbarrier_arrive, 8, object},
        {EventKind::mbarrier_wait, 8, object},
        {EventKind::copy_complete, 16, begin + 32},
        {EventKind::copy_complete, 32, begin + 64},
        {EventKind::mbarrier_phase_complete, 8, object},
        {EventKind::mbarrier_wait_done, 8, object},
    };
    size_t next = 0;
    for (const Recorded& event : recording.events) {
        if (event.kind < static_cast<uint8_t>(EventKind::barrier_wait)) continue;
        CHECK(next < sizeof expected / sizeof *expected);
        const Expected& wanted = expected[next++];
        CHECK_EQUAL(event.kind, static_cast<uint8_t>(wanted.kind));
        CHECK_EQUAL(event.bytes, wanted.bytes);
        CHECK_EQUAL(event.offset, wanted.offset);
    }
    CHECK_EQUAL(next, sizeof expected / sizeof *expected);
    CHECK(choose_recorded("none"));
    sim::checks::forget_recording();
}
