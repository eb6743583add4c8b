// What named barriers, fences and atomic variables order.
#include "grid.h"
#include "unit.h"

using namespace sim::checks;
using sim::Scope;
using unit::Floats;
using unit::Grid;

namespace {

const int flag = 0;

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
