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

CASE(who_arrived_at_a_named_barrier_is_forgotten_when_it_is_over) {
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

CASE(who_meets_at_a_named_barrier_passes_on_what_others_published) {
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

CASE(a_fence_of_the_block_publishes_to_the_block_alone) {
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

CASE(what_all_have_published_is_as_good_as_a_barrier_at_the_first_fence) {
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

CASE(a_fence_publishes_what_its_warp_did_before_it_met) {
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

CASE(what_was_learned_is_passed_on_at_the_next_fence) {
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

CASE(a_fence_puts_all_in_force_that_was_acquired_before_it) {
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

CASE(of_atomic_operations_one_of_another_block_stays_as_the_last_write) {
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

CASE(what_a_barrier_taught_of_other_blocks_orders_nothing_in_its_own) {
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

CASE(a_barrier_acquires_nothing_from_another_block) {
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

CASE(a_release_publishes_through_its_variable_alone) {
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

CASE(an_acquire_publishes_nothing) {
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

CASE(a_fence_of_one_order_does_half) {
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

CASE(one_phase_at_a_time_passes_what_was_learned_before_it) {
    // An arriving thread passes on the accesses of other threads that it knows, but not its own later accesses.
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

CASE(all_lanes_that_meet_learn_of_all) {
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

CASE(a_whole_warp_meets_without_clocks_of_its_lanes) {
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

CASE(a_whole_warp_passes_on_what_a_lane_has_learned_and_published) {
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

CASE(a_fence_publishes_of_its_warp_what_came_before_it_met_and_no_more) {
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

CASE(a_fence_publishes_what_its_block_did_before_it_met) {
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

CASE(what_all_have_published_twice_holds_up_to_the_earliest_of_the_last_fences) {
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
    // The time of the first fence of the second round: the time begins with 1, and 64 fences and a barrier precede it.
    CHECK_EQUAL(known_barrier(known, serial), 1 + 64 + 1 + 1);
    x.read(grid.thread(1, 5), 3);
    CHECK_EQUAL(finding_count(), 1);
}

CASE(what_has_been_waited_for_all_know_who_meet) {
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

CASE(what_lies_behind_the_last_thread_is_not_of_the_block) {
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

CASE(after_a_barrier_of_the_block_its_time_says_all_of_the_block) {
    Grid grid(1, 64);
    grid.syncwarp(0, 0, 6);
    CHECK(grid.thread(0, 1).extras->known);
    grid.syncthreads(0);
    CHECK(!grid.thread(0, 1).extras->known && !grid.thread(0, 3).extras);
}

CASE(who_has_learned_and_published_nothing_keeps_nothing) {
    Grid grid(1, 64);
    extras_of(grid.thread(0, 3));
    release(grid.thread(0, 3), &flag);
    CHECK(!log_of(&flag));
    grid.syncthreads(0);
    grid.syncwarp(0, 0);
    CHECK(!grid.thread(0, 0).extras && !grid.thread(0, 3).extras->known && !grid.thread(0, 3).extras->released[2]);
}

CASE(what_is_known_already_takes_no_memory) {
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
    // All threads share one clock, and the barrier's time is stored only once for their own block.
    known = polls.extras->known;
    const Release* released = polls.extras->released[2];
    CHECK(known && known == block.barrier_known && known->warp_mask == 0 && polls.extras->acquired && released);
    CHECK(grid.thread(2, 63).extras->acquired == polls.extras->acquired);  // no fence has followed the acquire
    CHECK(grid.thread(2, 63).extras->known == known && grid.thread(2, 63).extras->released[2] == released);
    CHECK(!block.fenced);
    grid.syncthreads(2);
    CHECK(polls.extras->released[2] == released);
}

CASE(a_later_fence_takes_the_place_of_those_that_reach_no_further) {
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

CASE(blocks_become_exact_where_fences_reach_beyond_one) {
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

CASE(a_block_that_becomes_exact_keeps_its_times_and_its_launch_one_worker) {
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

CASE(a_barrier_of_the_grid_orders_all_before_it_and_nothing_after) {
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

CASE(a_barrier_of_the_grid_orders_no_launch_beside_it) {
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

CASE(what_was_published_before_a_barrier_of_the_grid_says_nothing_of_what_follows) {
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

CASE(a_cluster_begins_anew_after_a_barrier_of_the_grid) {
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

CASE(what_went_through_variables_is_forgotten_with_the_launch) {
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

CASE(volatile_accesses_race_unless_threads_synchronize_through_them) {
    enum {
        nothing,
        atomic,
        polls,
        polls_elsewhere,
        in_a_condition,
        read_before_fence,
        write_after_fence,
        fence_after_atomic
    };
    for (auto how : {nothing, atomic, polls, polls_elsewhere, in_a_condition, read_before_fence, write_after_fence,
                     fence_after_atomic}) {
        Grid grid(3, 32);
        Floats x;
        ThreadState &writer = grid.thread(0, 0), &reader = grid.thread(1, 0);
        if (how == fence_after_atomic) writer.last_strong = LastStrong::atomic_read;
        if (how == write_after_fence || how == fence_after_atomic) fence(writer, Scope::device);
        volatile_access(x, writer, 3, true);
        reader.thread->conditions = how == in_a_condition;
        volatile_access(x, reader, 3, false);
        if (how == atomic) x.atomic(grid.thread(2, 0), 3);
        if (how == polls) volatile_access(x, reader, 3, false);
        if (how == polls_elsewhere) volatile_access(x, reader, 3, false, &other_flag);
        if (how == read_before_fence) fence(reader, Scope::device);
        CHECK_EQUAL(finding_count(), 0);
        report_held_races();
        CHECK_EQUAL(finding_count(), how == nothing || how == polls_elsewhere || how == fence_after_atomic);
        report_held_races();
        CHECK(finding_count() < 2);
        forget_findings();
    }
}

CASE(volatile_accesses_that_something_orders_are_no_race) {
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
