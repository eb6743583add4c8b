// What named barriers, fences and atomic variables order.
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
    x.read(grid.thread(0, 5), 0);  // after both
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
