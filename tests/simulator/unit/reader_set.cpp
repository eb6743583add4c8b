// Tests of sets of readers that list every member. Barriers of only a part of a block's threads need such sets.
#include "checks/synchronization/reader_set.h"

#include "grid.h"
#include "unit.h"

using namespace sim::checks;
using unit::Floats;
using unit::Grid;

namespace {

void one_member_for_each_warp_and_time() {
    Grid grid(1, 96);
    Floats x;
    x.read(grid.thread(0, 5), 0);
    become_exact(*grid.thread(0, 0).block);
    x.read(grid.thread(0, 9), 0);
    const ReaderSet* members = members_of(x.cell(0));
    CHECK(members && members->count == 1 && members->list[0].lanes == (1u << 5 | 1u << 9));
    CHECK(members->list[0].epoch == grid.thread(0, 5).epoch);
    x.read(grid.thread(0, 40), 0);
    x.read(grid.thread(0, 70), 0);
    CHECK(members_of(x.cell(0)) == members && members->count == 3 && members->list[1].lanes == 1u << 8);
    ShadowCell copy = x.cell(0);
    copy_members(*members, copy);
    CHECK(members_of(copy) != members && members_of(copy)->count == 3);
    CHECK(members_of(copy)->list[0].lanes == members->list[0].lanes);
    grid.syncthreads(0);
    x.read(grid.thread(0, 40), 0);  // replaces the readers before the barrier
    CHECK(members->count == 1 && members->list[0].lanes == 1u << 8);
}

}  // namespace

CASE(set_has_one_member_per_warp_and_time) {
    // Later launches reuse stored sets.
    for (unsigned launch = 0; launch < 2; ++launch) one_member_for_each_warp_and_time();
}

CASE(reader_sets_of_many_cells_are_freed) {
    Grid grid(1, 32);
    static ShadowCell cells[5000];
    for (unsigned launch = 0; launch < 2; ++launch) {
        for (ShadowCell& cell : cells) {
            cell = {};
            add_member(cell, grid.thread(0, 3).epoch, 7);
            const ReaderSet* members = members_of(cell);
            CHECK(members && members->count == 1 && members->list[0].site == 7);
        }
        forget_members();
        CHECK(!members_of(cells[0]) && !members_of(cells[4999]));
    }
}

CASE(later_read_by_a_lane_replaces_its_earlier_one) {
    Grid grid(1, 64);
    Floats x;
    become_exact(*grid.thread(0, 0).block);
    x.read(grid.thread(0, 40), 0);
    x.read(grid.thread(0, 3), 0);
    const ReaderSet* members = members_of(x.cell(0));
    CHECK(members && members->count == 2);
    sim::events::fence(*grid.thread(0, 3).thread, sim::Scope::block);
    x.read(grid.thread(0, 3), 0);
    CHECK(members->count == 2 && members->list[0].lanes == 1u << 8 && members->list[1].lanes == 1u << 3);
    CHECK(members->list[1].epoch == grid.thread(0, 3).epoch);
}

CASE(readers_of_completed_launches_are_removed) {
    Epoch over = never;
    {
        Grid before(1, 32);
        over = before.thread(0, 0).epoch;
    }
    Grid grid(1, 64);
    Floats x;
    become_exact(*grid.thread(0, 0).block);
    for (unsigned i = 0; i < 100; ++i) add_member(x.cell(0), over, 77);
    const ReaderSet* members = members_of(x.cell(0));
    CHECK(members && members->count <= sizeof members->own / sizeof members->own[0] && members->list == members->own);
}

CASE(unordered_member_of_another_warp_is_reported_first) {
    for (bool own_first : {false, true}) {
        for (unsigned block : {0, 1}) {
            Grid grid(2, 64);
            Floats x;
            for (unsigned b : {0, 1}) become_exact(*grid.thread(b, 0).block);
            ThreadState &own = grid.thread(0, 4), &other = grid.thread(block, block ? 7 : 40);
            x.read(own_first ? own : other, 0);
            x.read(own_first ? other : own, 0);
            const ReaderSet* members = members_of(x.cell(0));
            Member found = {};
            CHECK(members && members->count == 2);
            CHECK(find_unordered(grid.thread(0, 5), *members, every_kind, nullptr, &found));
            CHECK(found.epoch.serial() == other.block->serial && found.epoch.thread() == other.thread->linear);
            CHECK(find_unordered(other, *members, every_kind, nullptr, &found));
            CHECK(found.epoch.serial() == own.block->serial && found.epoch.thread() == own.thread->linear);
            x.read(own, 1);
            x.read(grid.thread(0, 9), 1);
            members = members_of(x.cell(1));  // no reader of another warp
            CHECK(members && find_unordered(grid.thread(0, 5), *members, every_kind, nullptr, &found));
        }
    }
}

CASE(thread_ordered_after_some_lanes_does_not_replace_the_others) {
    Grid grid(1, 32);
    Floats x;
    become_exact(*grid.thread(0, 0).block);
    grid.syncwarp(0, 0);
    x.read(grid.thread(0, 3), 0);
    x.read(grid.thread(0, 4), 0);
    grid.syncwarp(0, 0, 1u << 3 | 1u << 5);
    x.read(grid.thread(0, 3), 0);
    const ReaderSet* members = members_of(x.cell(0));
    CHECK(members && members->count == 2 && members->list[0].lanes == 1u << 4 && members->list[1].lanes == 1u << 3);
    grid.syncwarp(0, 0);
    x.read(grid.thread(0, 3), 0);
    CHECK(members->count < 3 && members->list[members->count - 1].lanes == 1u << 3);
}

CASE(member_may_be_a_whole_block) {
    Grid grid(2, 64);
    Floats x;
    for (unsigned thread = 0; thread < 64; ++thread) x.read(grid.thread(0, thread), 0);
    become_exact(*grid.thread(1, 0).block);
    x.read(grid.thread(1, 0), 0);
    const ReaderSet* members = members_of(x.cell(0));
    CHECK(members && members->count == 2 && members->list[0].lanes == 0);
    Member found = {};
    CHECK(find_unordered(grid.thread(1, 0), *members, every_kind, nullptr, &found));
    CHECK(found.epoch.serial() == grid.thread(0, 0).block->serial && found.site == members->list[0].site &&
          found.site != 0);
    add_member(x.cell(0), grid.thread(1, 1).epoch, 77);
    CHECK(members->count == 3 && x.cell(0).read_site == 77);
}
