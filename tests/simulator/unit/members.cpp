// Sets of readers that are kept member by member, where threads meet in parts of a block.
#include "checks/members.h"

#include "grid.h"
#include "unit.h"

using namespace sim::checks;
using unit::Floats;
using unit::Grid;

CASE(a_set_has_one_member_for_each_warp_and_time) {
    Grid grid(1, 96);
    Floats x;
    x.read(grid.thread(0, 5), 0);
    become_exact(*grid.thread(0, 0).block);
    x.read(grid.thread(0, 9), 0);
    const Members* members = members_of(x.cell(0));
    CHECK(members && members->count == 1 && members->list[0].lanes == (1u << 5 | 1u << 9));
    x.read(grid.thread(0, 40), 0);
    x.read(grid.thread(0, 70), 0);
    CHECK(members_of(x.cell(0)) == members && members->count == 3 && members->list[1].lanes == 1u << 8);
    ShadowCell copy = x.cell(0);
    copy_members(*members, copy);
    CHECK(members_of(copy) != members && members_of(copy)->count == 3);
    CHECK(members_of(copy)->list[0].lanes == members->list[0].lanes);
    grid.syncthreads(0);
    x.read(grid.thread(0, 40), 0);  // in the place of those before the barrier
    CHECK(members->count == 1 && members->list[0].lanes == 1u << 8);
}

CASE(who_met_some_lanes_does_not_stand_for_the_others) {
    Grid grid(1, 32);
    Floats x;
    become_exact(*grid.thread(0, 0).block);
    grid.syncwarp(0, 0);
    x.read(grid.thread(0, 3), 0);
    x.read(grid.thread(0, 4), 0);
    grid.syncwarp(0, 0, 1u << 3 | 1u << 5);
    x.read(grid.thread(0, 3), 0);
    const Members* members = members_of(x.cell(0));
    CHECK(members && members->count == 2 && members->list[0].lanes == 1u << 4 && members->list[1].lanes == 1u << 3);
    grid.syncwarp(0, 0);
    x.read(grid.thread(0, 3), 0);
    CHECK(members->count < 3 && members->list[members->count - 1].lanes == 1u << 3);
}

CASE(a_member_may_be_a_whole_block) {
    Grid grid(2, 64);
    Floats x;
    for (unsigned thread = 0; thread < 64; ++thread) x.read(grid.thread(0, thread), 0);
    become_exact(*grid.thread(1, 0).block);
    x.read(grid.thread(1, 0), 0);
    const Members* members = members_of(x.cell(0));
    CHECK(members && members->count == 2 && members->list[0].lanes == 0);
    Epoch epoch = never;
    uint16_t site = 0;
    CHECK(find_unordered(grid.thread(1, 0), *members, nullptr, &epoch, &site));
    CHECK(epoch.serial() == grid.thread(0, 0).block->serial && site == members->list[0].site && site != 0);
    add_member(x.cell(0), grid.thread(1, 1).epoch, 77);
    CHECK(members->count == 3 && x.cell(0).read_site == 77);
}
