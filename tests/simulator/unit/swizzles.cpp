// Tests of the check that shared memory is read with the swizzle with which it was written.
#include "checks/asynchronous/swizzles.h"

#include "found.h"
#include "grid.h"
#include "unit.h"

using namespace sim::checks;
using unit::Grid;

namespace {

// A grid whose shared memory is filled by copies with given swizzles, in pieces of 16 bytes.
struct Filled {
    Filled() : grid(1, 32), begin(reinterpret_cast<uintptr_t>(grid.shared(0))) {
        cell.write = grid.thread(0, 0).epoch.with_atomic(true);
        cell.write_site = site_id(code);
        site.region = find_shared(*grid.thread(0, 0).block, begin);
    }
    void fill(unsigned first, unsigned pieces, unsigned line) {
        note_swizzled_fill(*grid.thread(0, 0).block, begin + 16 * first, 16 * pieces, line);
    }
    // Reads a piece with a new descriptor.
    void read(unsigned piece, unsigned line) {
        SwizzleCheck check(grid.thread(0, 3), code + 1, line);
        check.check(*grid.thread(0, 3).block, begin + 16 * piece, cell, site);
    }
    static inline const char code[2] = {};
    Grid grid;
    uintptr_t begin;
    ShadowCell cell = {};
    AccessSite site = {};
};

}  // namespace

CASE(swizzle_is_that_of_the_last_copy_to_a_piece) {
    Filled memory;
    memory.read(0, 128);  // no copy has filled this piece
    memory.fill(0, 4, 128);
    memory.fill(1, 1, 64);
    memory.fill(3, 1, 0);  // a copy without a tensor map
    for (unsigned piece = 0; piece < 5; ++piece) memory.read(piece, piece == 1 ? 64 : 128);
    CHECK_EQUAL(finding_count(), 0);
    memory.read(2, 64);
    CHECK_EQUAL(finding_count(), 1);
    memory.read(3, 64);
    CHECK(finding_count() == 1 && finding(0).count == 1);
}

CASE(pieces_without_a_completed_copy_have_no_swizzle) {
    Filled memory;
    memory.fill(0, 4, 128);
    memory.cell.write = memory.cell.write.with_atomic(false);
    memory.read(0, 64);
    memory.cell.write = memory.cell.write.with_atomic(true).with_time(Epoch::time_pending);
    memory.read(0, 64);
    CHECK_EQUAL(finding_count(), 0);
}

CASE(different_swizzle_is_reported_once_per_descriptor) {
    Filled memory;
    memory.fill(0, 4, 128);
    SwizzleCheck check(memory.grid.thread(0, 3), Filled::code + 1, 64);
    for (unsigned piece = 2; piece < 4; ++piece)
        check.check(*memory.grid.thread(0, 3).block, memory.begin + 16 * piece, memory.cell, memory.site);
    CHECK_EQUAL(finding_count(), 1);
    const Finding& one = finding(0);
    CHECK(!strcmp(name_of(one.kind), "swizzle_differs") && one.count == 1 && unit::number_in(one) == 64 &&
          unit::number_in(one, 1) == 128);
    CHECK(one.place.known && one.place.offset == 32);
    CHECK(one.side.address == Filled::code + 1 && one.other.address == Filled::code);
    CHECK_EQUAL(one.side.access, static_cast<uint8_t>(Access::operand_read));
    CHECK_EQUAL(one.other.access, static_cast<uint8_t>(Access::async_write));
}
