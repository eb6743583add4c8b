// Tests of clusters: accesses that the cluster barrier orders, and accesses that it does not order.
#include "checks/synchronization/clusters.h"

#include "found.h"
#include "grid.h"
#include "unit.h"

using namespace sim::checks;
using unit::Floats;
using unit::Grid;

namespace {

// All threads of both blocks arrive at the cluster barrier with a release. If !first_releases, thread 0 of block 0
// arrives with .relaxed instead.
void all_arrive(Grid& grid, unsigned threads, bool first_releases = true) {
    for (unsigned block = 0; block < 2; ++block)
        for (unsigned thread = 0; thread < threads; ++thread)
            grid.arrive_at_cluster(block, thread, first_releases || block || thread);
    grid.complete_cluster(0);
}

void all_wait(Grid& grid, unsigned threads) {
    for (unsigned block = 0; block < 2; ++block)
        for (unsigned thread = 0; thread < threads; ++thread) grid.wait_for_cluster(block, thread);
}

}  // namespace

CASE(cluster_barrier_orders_accesses_before_and_after) {
    Grid grid(4, 40, 2);
    Floats x;
    x.write(grid.thread(0, 0), 0);
    x.read(grid.thread(0, 3), 1);
    x.write(grid.thread(1, 39), 2);
    for (unsigned block = 0; block < 2; ++block)
        for (unsigned thread = 0; thread < 40; ++thread) x.read(grid.thread(block, thread), 3);
    all_arrive(grid, 40);
    grid.wait_for_cluster(1, 33);
    x.read(grid.thread(1, 33), 0);
    x.write(grid.thread(1, 33), 1);
    x.read(grid.thread(1, 33), 2);
    x.write(grid.thread(1, 33), 3);  // element 3 was read by all threads of both blocks
    CHECK_FOUND("nothing");
    grid.wait_for_cluster(0, 39);
    x.write(grid.thread(0, 39), 0);  // element 0 was written by the same block, but read by the other one
    CHECK_FOUND("within_cluster");
}

CASE(thread_that_has_not_waited_is_not_ordered) {
    Grid grid(2, 40, 2);
    Floats x;
    x.write(grid.thread(0, 0), 0);
    all_arrive(grid, 40);
    grid.wait_for_cluster(1, 1);
    x.read(grid.thread(1, 2), 0);
    CHECK_FOUND("within_cluster");
}

CASE(accesses_after_a_cluster_arrival_are_not_published) {
    Grid grid(2, 40, 2);
    Floats x;
    for (unsigned thread = 0; thread < 40; ++thread) grid.arrive_at_cluster(0, thread);
    x.write(grid.thread(0, 0), 0);
    for (unsigned thread = 0; thread < 40; ++thread) grid.arrive_at_cluster(1, thread);
    grid.complete_cluster(0);
    grid.wait_for_cluster(1, 1);
    x.read(grid.thread(1, 1), 0);
    CHECK_FOUND("within_cluster");
}

CASE(relaxed_cluster_arrival_publishes_accesses_before_a_fence) {
    for (bool fenced : {false, true}) {
        Grid grid(2, 40, 2);
        Floats x;
        x.write(grid.thread(0, 0), 0);
        if (fenced) sim::events::fence(*grid.thread(0, 0).thread, sim::Scope::cluster);
        all_arrive(grid, 40, false);
        grid.wait_for_cluster(1, 1);
        x.read(grid.thread(1, 1), 0);
        CHECK_FOUND(fenced ? "nothing" : "within_cluster");
    }
}

CASE(each_cluster_phase_orders_again) {
    Grid grid(2, 33, 2);
    Floats x;
    for (unsigned round = 0; round < 20; ++round) {
        x.write(grid.thread(round % 2, round), 0);
        all_arrive(grid, 33);
        all_wait(grid, 33);
        for (unsigned thread = 0; thread < 33; ++thread) x.read(grid.thread(1 - round % 2, thread), 0);
        all_arrive(grid, 33);
        all_wait(grid, 33);
    }
    CHECK_FOUND("nothing");
    x.write(grid.thread(0, 0), 0);
    x.read(grid.thread(1, 0), 0);
    CHECK_FOUND("within_cluster");
}

CASE(barrier_of_one_cluster_does_not_order_another_cluster) {
    Grid grid(4, 32, 2);
    Floats x;
    x.write(grid.thread(2, 0), 0);
    all_arrive(grid, 32);
    grid.wait_for_cluster(0, 0);
    x.read(grid.thread(0, 0), 0);
    CHECK_FOUND("between_blocks");
}

CASE(serial_determines_the_cluster) {
    Grid grid(4, 32, 2);
    uint32_t first = grid.thread(0, 0).block->serial;
    for (unsigned a = 0; a < 4; ++a)
        for (unsigned b = 0; b < 4; ++b) CHECK_EQUAL(same_cluster(first + a, first + b), a / 2 == b / 2);
    CHECK(!same_cluster(first - 1, first));
}

// Time 0 of a cluster's first block precedes all accesses of the cluster. For an atomic operation on uninitialized
// shared memory, the cell stores time 0 as the time of the last write.
CASE(time_zero_is_ordered_before_all_accesses_of_a_cluster) {
    Grid grid(2, 32, 2);
    uint32_t serial = grid.thread(0, 0).block->serial;
    CHECK(ordered(grid.thread(1, 0), Epoch(serial, 0)) && !ordered(grid.thread(1, 0), Epoch(serial, 1)));
}

CASE(grid_barrier_resets_the_cluster_barrier) {
    Grid grid(2, 33, 2);
    Floats x;
    all_arrive(grid, 33);
    all_wait(grid, 33);
    grid.sync_grid();
    grid.syncwarp(0, 0, 0xff);
    x.write(grid.thread(0, 5), 0);  // other threads have already arrived
    all_arrive(grid, 33);
    grid.wait_for_cluster(1, 1);
    x.read(grid.thread(1, 1), 0);
    CHECK_FOUND("nothing");
}

// Thread 0 arrives without a release. So only those of its accesses that an earlier barrier ordered happen before the
// other threads' accesses.
CASE(block_barrier_before_the_arrival_orders_other_threads) {
    enum { before_barrier, before_syncwarp, after_syncwarp };
    for (int when : {before_barrier, before_syncwarp, after_syncwarp}) {
        Grid grid(2, 64, 2);
        Floats x;
        if (when == before_barrier) x.write(grid.thread(0, 0), 0);
        grid.syncthreads(0);
        if (when == before_syncwarp) x.write(grid.thread(0, 0), 0);
        grid.syncwarp(0, 0);
        if (when == after_syncwarp) x.write(grid.thread(0, 0), 0);
        all_arrive(grid, 64, false);
        grid.wait_for_cluster(1, 1);
        x.read(grid.thread(1, 1), 0);
        CHECK_FOUND(when == after_syncwarp ? "within_cluster" : "nothing");
    }
}

CASE(accesses_ordered_by_a_block_barrier_are_published_by_other_threads_arrivals) {
    Grid grid(2, 64, 2);
    Floats x;
    x.write(grid.thread(0, 0), 0);
    grid.syncthreads(0);
    x.write(grid.thread(0, 0), 1);
    all_arrive(grid, 64, false);
    grid.wait_for_cluster(1, 1);
    x.read(grid.thread(1, 1), 0);
    CHECK_FOUND("nothing");
    x.read(grid.thread(1, 1), 1);
    CHECK_FOUND("within_cluster");
}

CASE(knowledge_gained_after_the_arrival_is_not_published) {
    static const int flag = 0;
    Grid grid(4, 32, 2);
    Floats x;
    all_arrive(grid, 32);
    x.write(grid.thread(2, 0), 0);
    sim::events::fence(*grid.thread(2, 0).thread, sim::Scope::device);
    release(grid.thread(2, 0), &flag);
    acquire(grid.thread(0, 5), &flag);
    sim::events::fence(*grid.thread(0, 5).thread, sim::Scope::device);
    grid.wait_for_cluster(0, 5);
    grid.wait_for_cluster(0, 6);
    x.read(grid.thread(0, 5), 0);
    CHECK_FOUND("nothing");
    x.read(grid.thread(0, 6), 0);
    CHECK_FOUND("between_blocks");
}

CASE(syncwarp_of_one_warp_does_not_publish_other_warps) {
    Grid grid(2, 64, 2);
    Floats x;
    x.write(grid.thread(0, 32), 0);
    grid.syncwarp(0, 0);
    for (unsigned thread = 64; thread-- > 0;) {
        grid.arrive_at_cluster(0, thread, thread != 32);
        grid.arrive_at_cluster(1, thread);
    }
    grid.complete_cluster(0);
    grid.wait_for_cluster(1, 1);
    x.read(grid.thread(1, 1), 0);
    CHECK_FOUND("within_cluster");
}

CASE(cluster_barrier_passes_on_griddepcontrol_wait_of_one_thread) {
    Grid grid(2, 32, 2);
    grid.thread(0, 3).awaited = true;
    all_arrive(grid, 32);
    grid.wait_for_cluster(1, 1);
    CHECK(grid.thread(1, 1).awaited && !grid.thread(1, 2).awaited);
}

// A set of readers that is stored only as a range of threads does not tell which threads read after their arrival. So
// readers must be listed one by one.
CASE(cluster_of_one_block_lists_single_readers) {
    Grid grid(1, 64);
    Floats x;
    x.read(grid.thread(0, 0), 0);
    x.read(grid.thread(0, 32), 0);
    grid.arrive_at_cluster(0, 5);
    x.read(grid.thread(0, 5), 0);
    for (unsigned thread = 0; thread < 64; ++thread)
        if (thread != 5) grid.arrive_at_cluster(0, thread);
    grid.complete_cluster(0);
    grid.wait_for_cluster(0, 40);
    x.write(grid.thread(0, 40), 0);
    CHECK_FOUND("within_block");
}

CASE(late_arrival_does_not_publish_for_early_arrivals) {
    Grid grid(2, 33, 2);
    Floats x;
    grid.arrive_at_cluster(0, 32);
    x.write(grid.thread(0, 32), 0);
    grid.syncwarp(0, 0);
    for (unsigned thread = 0; thread < 32; ++thread) grid.arrive_at_cluster(0, thread);
    for (unsigned thread = 0; thread < 33; ++thread) grid.arrive_at_cluster(1, thread);
    grid.complete_cluster(0);
    grid.wait_for_cluster(1, 1);
    x.read(grid.thread(1, 1), 0);
    CHECK_FOUND("within_cluster");
}

CASE(knowledge_gained_before_the_arrival_is_published) {
    static const int flag = 0;
    for (bool fences : {true, false}) {
        Grid grid(4, 32, 2);
        Floats x;
        x.write(grid.thread(2, 0), 0);
        sim::events::fence(*grid.thread(2, 0).thread, sim::Scope::device);
        release(grid.thread(2, 0), &flag);
        acquire(grid.thread(0, 5), &flag);
        if (fences) sim::events::fence(*grid.thread(0, 5).thread, sim::Scope::device);
        all_arrive(grid, 32);
        grid.wait_for_cluster(1, 6);
        x.read(grid.thread(1, 6), 0);
        CHECK_FOUND(fences ? "nothing" : "between_blocks");
        x.read(grid.thread(1, 7), 0);
        CHECK_FOUND("between_blocks");
    }
}

CASE(remote_accesses_to_an_earlier_cluster_are_forgotten) {
    Grid grid(4, 32, 2);
    ShadowCell cell = {};
    AccessSite site = {};
    site.id = site_id(&site);
    site.cells = &cell;
    site.shift = site.size_log2 = 2;
    site.window = shared_window;
    site.access = Access::atomic;
    atomic_cell(grid.thread(0, 3), cell, site, {false});
    atomic_cell(grid.thread(2, 5), cell, site, {false});
    grid.syncthreads(2);
    site.access = Access::read;
    read_cell(grid.thread(2, 7), cell, site);
    CHECK_FOUND("nothing");
}

namespace {

// Makes 4-byte reads of another block's shared memory.
class Remote {
  public:
    explicit Remote(Grid& grid) : grid_(grid) {
        site_.id = site_id(&site_);
        site_.size_log2 = 2;
        site_.access = Access::async_read;
        for (unsigned block = 0; block < 4; ++block) grid.block(block).live = 40;
    }
    void read(unsigned block, unsigned thread, unsigned owner) {
        note_remote(grid_.thread(block, thread), site_, reinterpret_cast<uintptr_t>(grid_.shared(owner)));
    }
    void end(unsigned block) {
        grid_.block(block).live = 0;
        check_remote(*grid_.thread(block, 0).block);
    }

  private:
    Grid& grid_;
    AccessSite site_ = {};
};

}  // namespace

CASE(block_may_end_only_after_remote_reads_of_its_shared_memory) {
    for (unsigned owner : {0, 1}) {
        Grid grid(2, 40, 2);
        Remote remote(grid);
        remote.read(1 - owner, 37, owner);
        remote.read(owner, 3, owner);  // the owner's block has exited
        remote.end(owner);
        CHECK_FOUND("ended_block");
        const Finding& made = finding(0);
        CHECK(check_of(made.kind) == Check::memcheck && made.bytes == 4);
        CHECK_EQUAL(made.side.serial, grid.thread(1 - owner, 0).block->serial);
        CHECK_EQUAL(made.side.thread, 37);
        CHECK_EQUAL(made.side.access, Access::async_read);
        remote.end(1 - owner);
        CHECK_FOUND("ended_block");
    }
}

CASE(access_to_shared_memory_of_an_ended_block_is_reported) {
    Grid grid(2, 40, 2);
    Remote remote(grid);
    remote.end(0);
    CHECK_FOUND("nothing");
    remote.read(1, 39, 0);
    CHECK_FOUND("ended_block");
    CHECK_EQUAL(finding(0).side.thread, 39);
    CHECK_EQUAL(finding(0).side.serial, grid.thread(1, 0).block->serial);
}

CASE(block_knows_remote_readers_of_its_shared_memory) {
    enum { by_all, by_some, too_early, after_arriving };
    for (int how : {by_all, by_some, too_early, after_arriving}) {
        Grid grid(2, 40, 2);
        Remote remote(grid);
        if (how != after_arriving) remote.read(1, 0, 0);
        grid.arrive_at_cluster(1, 0);
        if (how == after_arriving) remote.read(1, 0, 0);
        for (unsigned thread = 1; thread < 40; ++thread) grid.arrive_at_cluster(1, thread, how != by_some);
        for (unsigned thread = 0; thread < 40; ++thread) grid.arrive_at_cluster(0, thread);
        grid.complete_cluster(0);
        if (how != too_early) grid.wait_for_cluster(0, how == by_some ? 0 : 39);
        remote.end(0);
        CHECK_FOUND(how == too_early || how == after_arriving ? "ended_block" : "nothing");
    }
}

CASE(grid_barrier_orders_remote_reads_of_shared_memory) {
    for (unsigned owner : {0, 1}) {
        Grid grid(2, 40, 2);
        Remote remote(grid);
        remote.read(1 - owner, 0, owner);
        grid.sync_grid();
        remote.end(owner);
        CHECK_FOUND("nothing");
    }
}

CASE(block_barrier_between_arrive_and_wait_orders) {
    Grid grid(2, 40, 2);
    Floats x;
    all_arrive(grid, 40);
    x.write(grid.thread(0, 3), 0);
    grid.syncthreads(0);
    grid.wait_for_cluster(0, 39);
    x.read(grid.thread(0, 39), 0);
    CHECK_FOUND("nothing");
}

CASE(accesses_after_a_fence_between_arrive_and_wait_are_not_published) {
    static const int flag = 0;
    Grid grid(4, 40, 2);
    Floats x;
    all_arrive(grid, 40);
    for (unsigned turn = 0; turn < 2; ++turn) sim::events::fence(*grid.thread(0, 0).thread, sim::Scope::device);
    grid.wait_for_cluster(0, 0);
    x.write(grid.thread(0, 0), 0);
    release(grid.thread(0, 0), &flag);
    acquire(grid.thread(2, 0), &flag);
    sim::events::fence(*grid.thread(2, 0).thread, sim::Scope::device);
    x.read(grid.thread(2, 0), 0);
    CHECK_FOUND("between_blocks");
}
