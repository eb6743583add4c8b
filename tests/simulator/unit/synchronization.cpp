// Tests of the order that named barriers, fences and atomic variables establish.
#include "as_thread.h"
#include "checks/synchronization/volatiles.h"
#include "grid.h"
#include "unit.h"

using namespace sim::checks;
using sim::Scope;
using unit::Floats;
using unit::Grid;

namespace {

const int flag = 0, other_flag = 0;

void fence(ThreadState& thread, Scope scope) { sim::events::fence(*thread.thread, scope); }
void set_flag(ThreadState& thread) { release(thread, &flag); }
void see_flag(ThreadState& thread, Scope scope = Scope::device) {
    acquire(thread, &flag);
    fence(thread, scope);
}

}  // namespace

CASE(named_barrier_forgets_arrivals_when_it_completes) {
    Grid grid(1, 96);
    Floats x;
    x.write(grid.thread(0, 0), 0);
    grid.arrive(0, 1, 0);
    CHECK(grid.thread(0, 0).block->exact);
    grid.meet(0, 1, {1});
    x.read(grid.thread(0, 33), 0);
    CHECK_EQUAL(finding_count(), 0);
    grid.meet(0, 1, {2});
    x.read(grid.thread(0, 65), 0);
    CHECK_EQUAL(finding_count(), 1);
}

CASE(named_barrier_passes_on_releases_of_its_threads) {
    for (bool fenced : {false, true}) {
        Grid grid(2, 96);
        Floats x;
        x.write(grid.thread(0, 0), 0);
        if (fenced) fence(grid.thread(0, 0), Scope::device);
        grid.meet(0, 1, {0, 1});
        set_flag(grid.thread(0, 32));
        see_flag(grid.thread(1, 0));
        x.read(grid.thread(1, 0), 0);
        CHECK_EQUAL(finding_count(), !fenced);
    }
}

CASE(block_scope_fence_publishes_only_to_the_block) {
    Grid grid(2, 64);
    Floats x;
    x.write(grid.thread(0, 0), 0);
    fence(grid.thread(0, 0), Scope::block);
    set_flag(grid.thread(0, 0));
    see_flag(grid.thread(0, 40), Scope::block);
    x.read(grid.thread(0, 40), 0);
    CHECK_EQUAL(finding_count(), 0);
    see_flag(grid.thread(1, 0));
    x.read(grid.thread(1, 0), 0);
    CHECK_EQUAL(finding_count(), 1);
}

CASE(fences_by_all_threads_order_like_a_barrier_at_the_first_fence) {
    for (bool all : {true, false}) {
        Grid grid(2, 64);
        Floats x;
        x.write(grid.thread(0, 0), 0);
        fence(grid.thread(0, 0), Scope::device);
        x.write(grid.thread(0, 0), 1);
        x.write(grid.thread(0, 3), 2);
        x.write(grid.thread(0, 7), 3);
        for (unsigned thread = 1; thread < 64; ++thread)
            if (all || thread != 7) fence(grid.thread(0, thread), Scope::device);
        grid.syncthreads(0);
        set_flag(grid.thread(0, 40));
        see_flag(grid.thread(1, 5));
        for (unsigned i : {0, 2}) x.read(grid.thread(1, 5), i);
        CHECK_EQUAL(finding_count(), 0);
        x.read(grid.thread(1, 5), 3);
        CHECK_EQUAL(finding_count(), !all);
        sim::checks::forget_findings();
        x.read(grid.thread(1, 5), 1);
        CHECK_EQUAL(finding_count(), 1);
    }
}

CASE(fence_publishes_accesses_of_its_warp_before_syncwarp) {
    for (bool met : {true, false}) {
        Grid grid(2, 64);
        Floats x;
        x.write(grid.thread(0, 1), 0);
        if (met) grid.syncwarp(0, 0);
        fence(grid.thread(0, 0), Scope::device);
        grid.syncthreads(0);
        set_flag(grid.thread(0, 40));
        see_flag(grid.thread(1, 5));
        x.read(grid.thread(1, 5), 0);
        CHECK_EQUAL(finding_count(), !met);
    }
}

CASE(acquired_accesses_are_published_by_the_next_fence) {
    for (bool fences : {true, false}) {
        Grid grid(3, 64);
        Floats x;
        x.write(grid.thread(0, 0), 0);
        fence(grid.thread(0, 0), Scope::device);
        set_flag(grid.thread(0, 0));
        see_flag(grid.thread(1, 5), Scope::block);
        if (fences) fence(grid.thread(1, 5), Scope::device);
        grid.syncthreads(1);
        if (!fences) fence(grid.thread(1, 40), Scope::block);
        release(grid.thread(1, 40), &other_flag);
        acquire(grid.thread(2, 9), &other_flag);
        fence(grid.thread(2, 9), Scope::device);
        x.read(grid.thread(2, 9), 0);
        CHECK_EQUAL(finding_count(), !fences);
    }
}

CASE(fence_completes_all_earlier_relaxed_reads) {
    Grid grid(3, 32);
    Floats x;
    for (unsigned block : {0, 1}) {
        x.write(grid.thread(block, 0), block);
        fence(grid.thread(block, 0), Scope::device);
        release(grid.thread(block, 0), block ? &other_flag : &flag);
    }
    for (const int* variable : {&flag, &other_flag}) acquire(grid.thread(2, 9), variable);
    fence(grid.thread(2, 9), Scope::device);
    for (unsigned i : {0, 1}) x.read(grid.thread(2, 9), i);
    CHECK_EQUAL(finding_count(), 0);
}

CASE(atomic_store_by_another_block_is_kept_as_the_last_write) {
    Grid grid(2, 32);
    Floats x;
    for (unsigned block : {0, 1}) become_exact(*grid.thread(block, 0).block);
    x.atomic(grid.thread(1, 4), 0);
    fence(grid.thread(1, 4), Scope::device);
    set_flag(grid.thread(1, 4));
    x.atomic(grid.thread(0, 3), 0);
    grid.syncthreads(0);
    see_flag(grid.thread(0, 5));
    x.read(grid.thread(0, 5), 0);  // ordered after both atomic operations
    x.read(grid.thread(1, 4), 0);
    CHECK_EQUAL(finding_count(), 0);
    CHECK_EQUAL(x.cell(0).write.serial(), grid.thread(1, 4).block->serial);
    CHECK_EQUAL(x.cell(0).write.thread(), 4);
}

CASE(clock_of_the_last_barrier_orders_nothing_in_its_own_block) {
    Grid grid(2, 64);
    Floats x;
    x.write(grid.thread(1, 0), 0);
    fence(grid.thread(1, 0), Scope::device);
    set_flag(grid.thread(1, 0));
    see_flag(grid.thread(0, 0));
    grid.syncthreads(0);
    x.write(grid.thread(0, 0), 1);
    x.read(grid.thread(0, 40), 0);
    CHECK_EQUAL(finding_count(), 0);
    x.read(grid.thread(0, 40), 1);
    CHECK_EQUAL(finding_count(), 1);
}

CASE(barrier_acquires_nothing_from_another_block) {
    enum { neither, before, after, of_the_block };
    for (auto fences : {neither, before, after, of_the_block}) {
        Grid grid(2, 64);
        Floats x;
        x.write(grid.thread(1, 0), 0);
        fence(grid.thread(1, 0), Scope::device);
        set_flag(grid.thread(1, 0));
        acquire(grid.thread(0, 0), &flag);
        if (fences == before) fence(grid.thread(0, 0), Scope::device);
        if (fences == of_the_block) fence(grid.thread(0, 0), Scope::block);
        grid.syncthreads(0);
        if (fences == after) fence(grid.thread(0, 40), Scope::device);
        x.read(grid.thread(0, 40), 0);
        CHECK_EQUAL(finding_count(), fences == neither || fences == of_the_block);
    }
}

CASE(release_publishes_only_through_its_variable) {
    enum { same, other_variable, later_store, stored_by_another };
    for (auto how : {same, other_variable, later_store, stored_by_another}) {
        Grid grid(3, 32);
        Floats x;
        ThreadState &writer = grid.thread(0, 0), &reader = grid.thread(1, 0);
        x.write(writer, 0);
        release(writer, &flag, Scope::device, sim::MemoryOrder::release, true);
        if (how == other_variable) release(writer, &other_flag, Scope::device, sim::MemoryOrder::relaxed, true);
        if (how == later_store) release(writer, &flag, Scope::device, sim::MemoryOrder::relaxed, true);
        if (how == stored_by_another) release(grid.thread(2, 0), &flag, Scope::device, sim::MemoryOrder::relaxed, true);
        acquire(reader, how == other_variable ? &other_flag : &flag, Scope::device, true);
        x.read(reader, 0);
        CHECK_EQUAL(finding_count(), how == other_variable || how == stored_by_another);
    }
}

CASE(acquire_publishes_nothing) {
    for (bool fences : {false, true}) {
        Grid grid(3, 32);
        Floats x;
        ThreadState &middle = grid.thread(1, 0), &reader = grid.thread(2, 0);
        x.write(grid.thread(0, 0), 0);
        release(grid.thread(0, 0), &flag, Scope::device, sim::MemoryOrder::release, true);
        acquire(middle, &flag, Scope::device, true);
        x.read(middle, 0);
        if (fences) fence(middle, Scope::device);
        release(middle, &other_flag, Scope::device, sim::MemoryOrder::relaxed, true);
        acquire(reader, &other_flag, Scope::device, true);
        CHECK_EQUAL(finding_count(), 0);
        x.read(reader, 0);
        CHECK_EQUAL(finding_count(), !fences);
    }
}

CASE(acquire_or_release_fence_does_half_of_a_full_fence) {
    enum { both, acquires, releases };
    for (auto how : {both, acquires, releases}) {
        auto of = [how](auto one, sim::MemoryOrder order) { return how == one ? order : sim::MemoryOrder::acq_rel; };
        Grid grid(2, 32);
        Floats x;
        x.write(grid.thread(0, 0), 0);
        fenced(grid.thread(0, 0), Scope::device, of(acquires, sim::MemoryOrder::acquire));
        set_flag(grid.thread(0, 0));
        acquire(grid.thread(1, 0), &flag);
        fenced(grid.thread(1, 0), Scope::device, of(releases, sim::MemoryOrder::release));
        x.read(grid.thread(1, 0), 0);
        CHECK_EQUAL(finding_count(), how != both);
    }
}

CASE(barrier_phase_passes_on_what_was_learned_before_it) {
    // An arrival orders the accesses of other threads that happened before it, but not the thread's own later accesses.
    Grid grid(1, 96);
    Floats x;
    x.write(grid.thread(0, 0), 0);
    grid.meet(0, 2, {0, 1});
    grid.arrive(0, 1, 1);
    x.write(grid.thread(0, 34), 1);
    grid.meet(0, 1, {2});
    x.read(grid.thread(0, 95), 0);
    CHECK_EQUAL(finding_count(), 0);
    x.read(grid.thread(0, 95), 1);
    CHECK_EQUAL(finding_count(), 1);
}

CASE(syncwarp_gives_all_lanes_the_knowledge_of_each) {
    for (bool named : {false, true}) {
        for (unsigned writer : {33u, 35u, 38u, 41u}) {
            Grid grid(1, 96);
            Floats x;
            x.write(grid.thread(0, writer), 0);
            if (named) {
                unsigned lanes[sim::max_warps_per_block] = {0, 0x64 | 2};
                grid.warp(0, 1).at_barrier[1].waiting = lanes[1];
                sim::events::barrier(grid.block(0), 1, lanes);
                grid.warp(0, 1).at_barrier[1].waiting = 0;
            } else {
                grid.syncwarp(0, 1, 0x64 | 2);
            }
            CHECK(grid.thread(0, 33).block->exact);
            for (unsigned reader : {33u, 34u, 37u, 38u}) {
                forget_findings();
                x.read(grid.thread(0, reader), 0);
                CHECK_EQUAL(finding_count(), writer == 35 || writer == 41);
            }
        }
    }
}

CASE(syncwarp_of_the_whole_warp_needs_no_lane_clocks) {
    Grid grid(1, 40);
    Floats x;
    BlockState& block = *grid.thread(0, 0).block;
    x.write(grid.thread(0, 39), 0);
    grid.syncwarp(0, 1);
    x.read(grid.thread(0, 32), 0);
    CHECK(!block.exact && !block.extras && block.warps[1].sync_time == block.time && block.warps[0].sync_time == 1);
    CHECK_EQUAL(finding_count(), 0);
    grid.syncwarp(0, 0, 0x7fffffff);
    CHECK(block.exact && block.warps[0].sync_time == 1);
}

CASE(syncwarp_of_the_whole_warp_passes_on_knowledge_and_releases_of_a_lane) {
    for (bool met : {true, false}) {
        Grid grid(3, 64);
        Floats x;
        x.write(grid.thread(0, 0), 0);
        fence(grid.thread(0, 0), Scope::device);
        set_flag(grid.thread(0, 0));
        see_flag(grid.thread(1, 35));
        x.write(grid.thread(1, 35), 1);
        fence(grid.thread(1, 35), Scope::device);
        if (met) grid.syncwarp(1, 1);
        x.read(grid.thread(1, 36), 0);
        release(grid.thread(1, 36), &other_flag);
        CHECK_EQUAL(finding_count(), !met);
        forget_findings();
        acquire(grid.thread(2, 9), &other_flag);
        fence(grid.thread(2, 9), Scope::device);
        x.read(grid.thread(2, 9), 1);
        CHECK_EQUAL(finding_count(), !met);
    }
}

CASE(fence_publishes_of_its_warp_only_accesses_before_syncwarp) {
    for (unsigned lane : {0, 31}) {
        Grid grid(2, 64);
        Floats x;
        grid.syncwarp(0, 1);
        x.write(grid.thread(0, 32 + lane), 0);
        grid.syncwarp(0, 1);
        x.write(grid.thread(0, 32 + lane), 1);
        fence(grid.thread(0, lane ? 32 : 37), Scope::device);
        grid.syncthreads(0);
        set_flag(grid.thread(0, 4));
        see_flag(grid.thread(1, 5));
        x.read(grid.thread(1, 5), 0);
        CHECK_EQUAL(finding_count(), 0);
        x.read(grid.thread(1, 5), 1);
        CHECK_EQUAL(finding_count(), 1);
    }
}

CASE(fence_publishes_accesses_of_its_block_before_the_barrier) {
    Grid grid(2, 64);
    Floats x;
    x.write(grid.thread(0, 0), 0);
    grid.syncthreads(0);
    fence(grid.thread(0, 33), Scope::device);
    grid.syncthreads(0);
    set_flag(grid.thread(0, 40));
    see_flag(grid.thread(1, 5));
    x.read(grid.thread(1, 5), 0);
    CHECK_EQUAL(finding_count(), 0);
}

CASE(second_fences_by_all_threads_order_up_to_the_earliest_of_them) {
    Grid grid(2, 64);
    Floats x;
    for (unsigned round : {0, 1}) {
        x.write(grid.thread(0, 3), 2 * round);
        for (unsigned thread = 0; thread < 64; ++thread) fence(grid.thread(0, thread), Scope::device);
        x.write(grid.thread(0, 3), 2 * round + 1);
        grid.syncthreads(0);
    }
    set_flag(grid.thread(0, 40));
    see_flag(grid.thread(1, 5));
    for (unsigned i : {0, 1, 2}) x.read(grid.thread(1, 5), i);
    CHECK_EQUAL(finding_count(), 0);
    const VectorClock* known = grid.thread(1, 5).extras->known;
    const uint32_t serial = grid.thread(0, 0).block->serial;
    // The time of the second round's first fence: the time begins with 1, and 64 fences, a barrier and this fence add 1
    // each.
    CHECK_EQUAL(known_barrier(known, serial), 1 + 64 + 1 + 1);
    x.read(grid.thread(1, 5), 3);
    CHECK_EQUAL(finding_count(), 1);
}

CASE(barrier_passes_on_griddepcontrol_wait_to_all_threads) {
    enum { block, warp, lanes, named };
    for (auto how : {block, warp, lanes, named}) {
        for (bool waited : {true, false}) {
            {
                Grid before(1, 32);
            }
            Grid grid(1, 64);
            const uint32_t open = the_launch.open_serial;
            the_launch.overlap_first = open - 1;
            the_launch.overlap_serials = 1;
            grid.thread(0, 0).awaited = waited;
            for (unsigned thread = 0; thread < 64; ++thread) set_floors(grid.thread(0, thread));
            if (how == block) grid.syncthreads(0);
            if (how == warp) grid.syncwarp(0, 0);
            if (how == lanes) grid.syncwarp(0, 0, 0x81);
            if (how == named) grid.meet(0, 1, {0});
            for (unsigned thread : {0u, 6u, 7u, 63u}) {
                const ThreadState& state = grid.thread(0, thread);
                bool knows = waited && (thread == 0 || how == block || thread == 7 || (thread == 6 && how != lanes));
                CHECK_EQUAL(state.awaited, knows);
                CHECK(state.floors[global_window].end() == Epoch(open - !knows, 0));
            }
            the_launch.overlap_serials = 0;
        }
    }
}

CASE(lanes_past_the_end_of_the_block_are_ignored) {
    enum { exact, block, named, grids };
    for (auto how : {exact, block, named, grids}) {
        {
            Grid larger(1, 96);
        }
        Grid grid(1, 40);
        BlockState& state = *grid.thread(0, 0).block;
        ThreadState& behind = state.threads[40];
        ThreadState& next_warp = state.threads[64];
        extras_of(grid.thread(0, 3));
        behind.block = next_warp.block = &state;
        behind.extras = next_warp.extras = nullptr;
        behind.covered = next_warp.covered = Epoch(1, 2, 3);
        behind.awaited = true;
        grid.warp(0, 2).at_barrier[1].waiting = 1;
        if (how == exact) become_exact(state);
        if (how == block) grid.syncthreads(0);
        if (how == named) grid.meet(0, 1, {0});
        if (how == grids) grid.sync_grid();
        CHECK(behind.covered == Epoch(1, 2, 3) && next_warp.covered == Epoch(1, 2, 3));
        CHECK(!grid.thread(0, 0).awaited);
        grid.warp(0, 2).at_barrier[1].waiting = 0;
        behind.awaited = false;
    }
}

CASE(barrier_time_covers_all_accesses_of_the_block) {
    Grid grid(1, 64);
    grid.syncwarp(0, 0, 6);
    CHECK(grid.thread(0, 1).extras->known);
    grid.syncthreads(0);
    CHECK(!grid.thread(0, 1).extras->known && !grid.thread(0, 3).extras);
}

CASE(thread_without_knowledge_or_releases_needs_no_clock) {
    Grid grid(1, 64);
    extras_of(grid.thread(0, 3));
    release(grid.thread(0, 3), &flag);
    CHECK(!log_of(&flag));
    grid.syncthreads(0);
    grid.syncwarp(0, 0);
    CHECK(!grid.thread(0, 0).extras && !grid.thread(0, 3).extras->known && !grid.thread(0, 3).extras->released[2]);
}

CASE(known_clock_is_reused_without_memory) {
    Grid grid(3, 64);
    for (unsigned block : {0, 1}) fence(grid.thread(block, 0), Scope::device);
    set_flag(grid.thread(0, 0));
    release(grid.thread(1, 0), &other_flag);
    ThreadState& polls = grid.thread(2, 0);
    for (const int* variable : {&flag, &other_flag}) {
        acquire(polls, variable);
        const VectorClock* acquired = polls.extras->acquired;
        CHECK(acquired && !polls.extras->known);
        acquire(polls, variable);
        CHECK(polls.extras->acquired == acquired);
    }
    fence(polls, Scope::device);
    const VectorClock* known = polls.extras->known;
    CHECK(known && !polls.extras->acquired);
    for (const int* variable : {&flag, &other_flag}) acquire(polls, variable);
    fence(polls, Scope::device);
    CHECK(polls.extras->known == known && !polls.extras->acquired);
    fence(grid.thread(0, 0), Scope::device);
    set_flag(grid.thread(0, 0));  // publishes something new
    acquire(polls, &other_flag);
    CHECK(!polls.extras->acquired);
    acquire(polls, &flag);
    CHECK(polls.extras->acquired);
    BlockState& block = *polls.block;
    CHECK(block.fenced);
    grid.syncthreads(2);
    // All threads share one clock. The time of their own block's barrier is stored in the block, not once per thread.
    known = polls.extras->known;
    const Release* released = polls.extras->released[2];
    CHECK(known && known == block.barrier_known && known->warp_mask == 0 && polls.extras->acquired && released);
    CHECK(grid.thread(2, 63).extras->acquired == polls.extras->acquired);  // no fence has followed the acquire
    CHECK(grid.thread(2, 63).extras->known == known && grid.thread(2, 63).extras->released[2] == released);
    CHECK(!block.fenced);
    grid.syncthreads(2);
    CHECK(polls.extras->released[2] == released);
}

CASE(wider_fence_replaces_earlier_narrower_ones) {
    const struct {
        Scope first, second;
        unsigned published;
    } cases[] = {
        {Scope::block, Scope::block, 1},   {Scope::block, Scope::cluster, 1},  {Scope::cluster, Scope::block, 2},
        {Scope::block, Scope::device, 1},  {Scope::cluster, Scope::device, 1}, {Scope::device, Scope::cluster, 2},
        {Scope::device, Scope::system, 1}, {Scope::system, Scope::device, 1},  {Scope::device, Scope::block, 2}};
    for (auto& one : cases) {
        Grid grid(2, 32, 2);
        fence(grid.thread(0, 0), one.first);
        fence(grid.thread(0, 0), one.second);
        set_flag(grid.thread(0, 0));
        CHECK_EQUAL(log_of(&flag)->length(), one.published);
    }
}

CASE(fences_beyond_a_block_make_reader_sets_exact) {
    for (auto scope : {Scope::block, Scope::cluster, Scope::device}) {
        Grid grid(2, 64);
        fenced(grid.thread(0, 0), scope);
        CHECK(grid.thread(0, 0).block->exact && grid.thread(0, 33).covered == Epoch::none());
        CHECK_EQUAL(the_launch.exact, scope == Scope::device);
        CHECK(!grid.thread(1, 33).block->exact);
        grid.syncthreads(1);
        CHECK_EQUAL(grid.thread(1, 33).block->exact, scope == Scope::device);
        CHECK_EQUAL(grid.thread(1, 33).covered == Epoch::none(), scope == Scope::device);
    }
}

CASE(block_that_becomes_exact_keeps_times_and_its_launch_has_one_worker) {
    Grid grid(1, 40);
    BlockState& block = *grid.thread(0, 0).block;
    grid.syncthreads(0);
    sim::Grid run = {};
    run.workers = 2;
    unit::as_thread(grid.thread(0, 3), [&] { become_exact(block); }, run);
    CHECK(run.workers == 1 && run.one_worker_reason && block.exact);
    for (unsigned thread : {0u, 3u, 39u}) {
        CHECK(grid.thread(0, thread).covered == Epoch::none() && grid.thread(0, thread).warp_covered == Epoch::none());
        CHECK_EQUAL(grid.thread(0, thread).time(), 2);
    }
    grid.thread(0, 3).covered = Epoch(1, 2, 3);
    become_exact(block);  // a second call changes nothing
    CHECK(grid.thread(0, 3).covered == Epoch(1, 2, 3));
}

CASE(grid_barrier_orders_all_accesses_before_it) {
    Grid grid(2, 40);
    Floats x;
    x.write(grid.thread(0, 39), 0);
    grid.syncwarp(0, 0);
    grid.sync_grid();
    CHECK_EQUAL(the_launch.open_serial, the_launch.first_serial);
    for (unsigned block : {0, 1})
        for (unsigned thread : {0u, 39u}) {
            const ThreadState& state = grid.thread(block, thread);
            CHECK(state.epoch == Epoch(the_launch.first_serial + block, state.block->time, thread));
            CHECK_EQUAL(state.barrier_time, state.block->time);
            CHECK(state.floors[global_window].end() == Epoch(the_launch.first_serial, 0));
        }
    x.read(grid.thread(1, 3), 0);
    CHECK_EQUAL(finding_count(), 0);
    x.write(grid.thread(0, 39), 1);
    x.read(grid.thread(0, 3), 1);
    CHECK_EQUAL(finding_count(), 1);
    forget_findings();
    x.read(grid.thread(1, 3), 1);
    CHECK_EQUAL(finding_count(), 1);
}

CASE(grid_barrier_does_not_order_other_launches) {
    {
        Grid before(1, 32);
    }
    Grid grid(2, 32);
    const uint32_t open = the_launch.open_serial;
    the_launch.open_serial = open - 1;
    grid.sync_grid();
    CHECK(the_launch.open_serial == open - 1 && the_launch.first_serial == open + 2);
    the_launch.open_serial = open;
}

CASE(releases_before_a_grid_barrier_do_not_publish_later_accesses) {
    Grid grid(2, 64);
    Floats x;
    fence(grid.thread(0, 0), Scope::device);
    set_flag(grid.thread(0, 0));
    see_flag(grid.thread(1, 0));
    see_flag(grid.thread(0, 40));
    grid.sync_grid();
    for (unsigned i : {0, 1}) x.write(grid.thread(0, 0), i);
    x.read(grid.thread(1, 0), 0);
    CHECK_EQUAL(finding_count(), 1);
    forget_findings();
    x.read(grid.thread(0, 40), 1);
    CHECK_EQUAL(finding_count(), 1);
    forget_findings();
    set_flag(grid.thread(0, 0));
    see_flag(grid.thread(1, 5));
    x.read(grid.thread(1, 5), 1);
    CHECK_EQUAL(finding_count(), 1);
}

CASE(cluster_state_restarts_after_a_grid_barrier) {
    Grid grid(2, 32, 2);
    Floats x;
    auto meet = [&] {
        for (unsigned block : {0, 1})
            for (unsigned thread = 0; thread < 32; ++thread) grid.arrive_at_cluster(block, thread);
        grid.complete_cluster(0);
        for (unsigned block : {0, 1})
            for (unsigned thread = 0; thread < 32; ++thread) grid.wait_for_cluster(block, thread);
    };
    meet();
    grid.sync_grid();
    grid.syncwarp(0, 0, 6);  // lanes 1 and 2 get later times than the other lanes
    x.write(grid.thread(0, 1), 0);
    meet();
    x.read(grid.thread(1, 3), 0);
    CHECK_EQUAL(finding_count(), 0);
}

CASE(logs_of_variables_end_with_the_launch) {
    static const char variables[400] = {};
    CHECK(!unit::leaks([] {
        Grid grid(1, 32);
        fence(grid.thread(0, 0), Scope::device);
        for (const char& variable : variables) release(grid.thread(0, 0), &variable);
    }));
    CHECK(!log_of(variables));
}

namespace {

// Makes a volatile read or write of x[i], as the compiler's hook reports it.
void volatile_access(Floats& x, ThreadState& thread, unsigned i, bool writes, const void* code = &flag) {
    x.strong(thread, i, writes ? Access::volatile_write : Access::volatile_read);
    uintptr_t address = reinterpret_cast<uintptr_t>(x.at(i));
    if (writes)
        note_volatile_write(thread, address, 4);
    else
        note_volatile_read(thread, address, 4, code);
}

}  // namespace

// Makes a volatile read that finds another value than the read before.
void changed_read(Floats& x, ThreadState& thread, unsigned i, const void* code = &flag) {
    *x.at(i) += 1;
    volatile_access(x, thread, i, false, code);
}

CASE(volatile_accesses_race_unless_threads_synchronize_through_them) {
    enum {
        nothing,
        atomic,
        polls,
        reads_again,
        polls_elsewhere,
        in_a_condition,
        read_before_fence,
        write_after_fence,
        fence_after_atomic
    };
    for (auto how : {nothing, atomic, polls, reads_again, polls_elsewhere, in_a_condition, read_before_fence,
                     write_after_fence, fence_after_atomic}) {
        Grid grid(3, 32);
        Floats x;
        ThreadState &writer = grid.thread(0, 0), &reader = grid.thread(1, 0);
        if (how == fence_after_atomic) writer.last_strong = LastStrong::atomic_read;
        if (how == write_after_fence || how == fence_after_atomic) fence(writer, Scope::device);
        volatile_access(x, writer, 3, true);
        reader.thread->conditions = how == in_a_condition;
        volatile_access(x, reader, 3, false);
        if (how == atomic) x.atomic_load(grid.thread(2, 0), 3);
        if (how == polls) changed_read(x, reader, 3);
        if (how == reads_again) volatile_access(x, reader, 3, false);
        if (how == polls_elsewhere) changed_read(x, reader, 3, &other_flag);
        if (how == read_before_fence) fence(reader, Scope::device);
        CHECK_EQUAL(finding_count(), 0);
        report_held_races();
        CHECK_EQUAL(finding_count(), how == nothing || how == reads_again || how == polls_elsewhere ||
                                         how == read_before_fence || how == fence_after_atomic);
        report_held_races();
        CHECK(finding_count() < 2);
        forget_findings();
    }
}

CASE(volatile_write_races_with_an_atomic_operation_unless_threads_synchronize_through_it) {
    enum { nothing, load, polls, in_a_condition, write_after_fence, compares, adds_zero, ordered };
    for (bool write_first : {false, true}) {
        for (auto how : {nothing, load, polls, in_a_condition, write_after_fence, compares, adds_zero, ordered}) {
            Grid grid(3, 64);
            Floats x;
            ThreadState &writer = grid.thread(0, 0), &reader = grid.thread(2, 0);
            ThreadState& other = how == ordered ? grid.thread(0, 40) : grid.thread(1, 0);
            for (bool writes : {write_first, !write_first}) {
                if (!writes) {
                    how == load ? x.atomic_load(other, 3) : x.atomic(other, 3);
                    auto op = how == load       ? sim::AtomicOp::load
                              : how == compares ? sim::AtomicOp::compare_and_swap
                                                : sim::AtomicOp::add;
                    note_atomic(other, x.code(Access::atomic), op, how != load && how != adds_zero);
                } else {
                    if (how == write_after_fence) fence(writer, Scope::device);
                    volatile_access(x, writer, 3, true);
                    *x.at(3) += 1;
                    if (writer.pending) settle(writer, 0, nullptr);
                }
                if (how == ordered) grid.syncthreads(0);
            }
            reader.thread->conditions = how == in_a_condition;
            if (how == polls || how == in_a_condition) volatile_access(x, reader, 3, false);
            if (how == polls) changed_read(x, reader, 3);
            CHECK_EQUAL(finding_count(), 0);
            report_held_races();
            CHECK_EQUAL(finding_count(), how == nothing);
            forget_findings();
        }
    }
}

CASE(volatile_read_beside_atomic_operations_is_no_race) {
    Grid grid(2, 32);
    Floats x;
    x.atomic(grid.thread(0, 0), 3);
    volatile_access(x, grid.thread(1, 0), 3, false);
    x.atomic(grid.thread(0, 0), 3);
    report_held_races();
    CHECK_EQUAL(finding_count(), 0);
}

CASE(ordered_volatile_accesses_are_no_race) {
    Grid grid(2, 64);
    Floats x;
    volatile_access(x, grid.thread(0, 0), 0, true);
    grid.syncthreads(0);
    volatile_access(x, grid.thread(0, 40), 0, false);
    volatile_access(x, grid.thread(0, 0), 1, false);
    volatile_access(x, grid.thread(1, 0), 1, false);
    report_held_races();
    CHECK_EQUAL(finding_count(), 0);
}

// A block without checks may have passed on the order, so only a block that has read no flag can be known to race.
CASE(partly_checked_block_that_has_read_a_flag_may_be_ordered_after_other_blocks) {
    for (bool partly : {false, true}) {
        for (bool reads_flag : {false, true}) {
            Grid grid(2, 32);
            grid.launch().partly_checked = partly;
            Floats x(false);
            x.write(grid.thread(0, 0), 0);
            if (reads_flag) acquire(grid.thread(1, 5), &flag);
            x.read(grid.thread(1, 0), 0);
            x.read(grid.thread(1, 0), 1);
            CHECK_EQUAL(finding_count(), partly && reads_flag ? 0 : 2);
        }
    }
}

CASE(memory_counts_as_written_after_a_partly_checked_launch) {
    for (bool partly : {false, true}) {
        Floats x(false);
        {
            Grid grid(2, 32);
            grid.launch().partly_checked = partly;
        }
        Grid grid(2, 32);
        x.read(grid.thread(0, 0), 0);
        CHECK_EQUAL(finding_count(), partly ? 0 : 1);
    }
}
