// Blocks and what they share: the numbers by which a thread is named, shared arrays, and what the events of a launch leave.
#include "checks/clusters.h"
#include "checks/counting.h"
#include "checks/executed.h"
#include "checks/streams.h"
#include "grid.h"
#include "unit.h"

using namespace sim::checks;
using unit::Floats;
using unit::Grid;

namespace {

bool same(const uint32_t* actual, uint32_t x, uint32_t y, uint32_t z) {
    return actual[0] == x && actual[1] == y && actual[2] == z;
}

// A launch that takes so many numbers; the first of them.
uint32_t pass(uint32_t blocks) {
    PastLaunch launch = {};
    launch.blocks = blocks;
    for (unsigned i = 0; i < 3; ++i) launch.grid[i] = launch.block[i] = launch.cluster[i] = 1;
    if (!begin_serials(launch)) return 0;
    end_serials();
    return the_launch.start_serial;
}

}  // namespace

CASE(a_thread_has_the_names_that_the_shape_of_its_launch_gives) {
    PastLaunch launch = {};
    const uint32_t grid[] = {4, 6, 8}, block[] = {4, 2, 3}, cluster[] = {2, 3, 4};
    memcpy(launch.grid, grid, sizeof grid);
    memcpy(launch.block, block, sizeof block);
    memcpy(launch.cluster, cluster, sizeof cluster);
    launch.blocks = 4 * 6 * 8;
    CHECK(begin_serials(launch));
    uint32_t serial = the_launch.first_serial, index[3], thread[3];
    CHECK_EQUAL(the_launch.cluster_size, 24);
    for (uint32_t c = 0; c < 8; ++c)
        for (uint32_t rank = 0; rank < 24; ++rank, ++serial) {
            CHECK(name_thread(serial, rank, index, thread));
            CHECK(same(index, c % 2 * 2 + rank % 2, c / 2 % 2 * 3 + rank / 2 % 3, c / 4 * 4 + rank / 6));
            CHECK(same(thread, rank % 4, rank / 4 % 2, rank / 8));
        }
    end_serials();
    CHECK_EQUAL(pass(3), serial);
    CHECK_EQUAL(pass(1), serial + 3);
    CHECK(past_launch(serial - 1)->blocks == 4 * 6 * 8 && past_launch(serial + 2)->blocks == 3);
    forget_names();
    CHECK(!past_launch(serial) && !name_thread(serial, 0, index, thread));
}

CASE(when_all_numbers_are_used_up_they_begin_again) {
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
    CHECK_EQUAL(pass(limit - reserve), 0);  // more than there are
    CHECK_EQUAL(pass(limit - reserve - 2), 1);
    the_launch.blocks = 0u - the_launch.first_serial + 1;
    end_serials();
    forget_names();
}

CASE(a_shared_array_is_known_in_its_launch_alone) {
    const char slots[2] = {};
    for (unsigned turn = 0; turn < 2; ++turn) {
        Grid grid(1, 32);
        uintptr_t base = reinterpret_cast<uintptr_t>(grid.block(0).shared);
        BlockState& block = *state_of(grid.block(0));
        sim::events::shared_array(grid.launch(), slots, 128, 64, "first");
        if (turn == 0) sim::events::shared_array(grid.launch(), slots + 1, 256, 64, "second");
        Region* first = find_shared(block, base + 191);
        CHECK(first && !strcmp(first->name, "first") && first->base == base + 128 && first->bytes == 64);
        CHECK(!find_shared(block, base + 127) && !find_shared(block, base + 192));
        Region* second = find_shared(block, base + 256);
        CHECK(!second == (turn == 1));
        CHECK(!second || (second->cells - first->cells == 128 && second->id != first->id));
        CHECK(nearest_shared(block, base + 210) == first);
        CHECK(nearest_shared(block, base + 250) == (second ? second : first));
        CHECK(nearest_shared(block, base + 100)->kind == RegionKind::shared_array);
        CHECK(nearest_shared(block, reinterpret_cast<uintptr_t>(grid.block(0).dynamic_shared) - 20)->kind ==
              RegionKind::dynamic_shared);
    }
}

CASE(a_block_that_has_ended_is_forgotten_and_its_neighbour_is_not) {
    Grid grid(2, 96);
    sim::events::block_end(grid.block(0));
    CHECK(!state_of(grid.block(0)) && !state_of(grid.block(0).threads[95]) && !state_of(grid.block(0).warps[2]));
    for (unsigned t = 0; t < 96; ++t) CHECK(state_of(grid.block(1).threads[t]));
    for (unsigned w = 0; w < 3; ++w) CHECK(state_of(grid.block(1).warps[w]));
}
