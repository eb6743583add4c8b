// Tests of the count of sectors of device memory that launches and the host access. A sector that several worker
// threads access counts once.
#include "checks/counting/touched_sectors.h"

#include "checks/core/state.h"
#include "unit.h"

using namespace sim::checks;

namespace {

// Returns one of a launch's workers, before the launch begins.
WorkerState& worker(unsigned i) {
    static char workers[3];
    sim::Block block = {};
    block.worker = reinterpret_cast<sim::Worker*>(workers + i);
    WorkerState& state = worker_of(block);
    begin_sectors(state);
    return state;
}

void touch(unsigned i, bool write, size_t from, size_t to) { worker(i).sectors->touch(write, from, to); }

bool is(const SectorTotals& totals, uint64_t read, uint64_t written, uint64_t either, uint64_t first_read) {
    return totals.read == read && totals.written == written && totals.either == either &&
           totals.first_read == first_read;
}

void host_writes(size_t offset, size_t bytes) {
    remember_sectors(reinterpret_cast<uintptr_t>(sim::arena_range().base) + offset, bytes);
}

}  // namespace

CASE(sectors_of_several_workers_are_counted_once) {
    forget_sectors();
    CHECK(is(end_sectors(), 0, 0, 0, 0));
    for (unsigned turn = 0; turn < 2; ++turn) {
        touch(0, false, 100, 199);
        touch(1, false, 150, 349);
        touch(2, false, 10, 19);
        touch(1, true, 300, 309);
        touch(2, true, 5000, 5000);
        touch(0, true, 64, 64);
        // Sectors accessed by an earlier launch, or written by this one, do not count as first reads.
        CHECK(is(end_sectors(), 260, 12, 262, turn ? 0 : 250));
        CHECK(is(end_sectors(), 0, 0, 0, 0));
    }
    touch(2, false, 300, 359);
    CHECK(is(end_sectors(), 60, 0, 60, 10));
    touch(1, true, 0, 0);
    CHECK(is(end_sectors(), 0, 1, 1, 0));
    touch(0, false, 5000, 5001);
    CHECK(is(end_sectors(), 2, 0, 2, 1));
    forget_sectors();
    touch(0, false, 5000, 5001);
    CHECK(is(end_sectors(), 2, 0, 2, 2));
    const size_t last = sim::arena_range().bytes / 32 - 1;
    touch(0, false, last, last);
    CHECK(is(end_sectors(), 1, 0, 1, 1));
    forget_sectors();
}

CASE(sectors_of_a_rolled_back_launch_are_forgotten) {
    forget_sectors();
    for (unsigned i = 0; i < 3; ++i) {
        touch(i, false, 10 + 64 * i, 200);
        touch(i, true, 500, 500 + 100 * i);
    }
    drop_sectors();
    CHECK(is(end_sectors(), 0, 0, 0, 0));
    touch(1, false, 10, 200);
    touch(2, true, 600, 600);
    CHECK(is(end_sectors(), 191, 1, 192, 191));
    forget_sectors();
}

CASE(sectors_written_by_the_host_are_not_first_reads) {
    forget_sectors();
    host_writes(32 * 10 + 31, 2);  // the end of one sector and the start of the next
    host_writes(32 * 20, 32);
    for (unsigned sector : {30, 64}) host_writes(32 * sector, 0);
    host_writes(sim::arena_range().bytes, 32);
    host_writes(static_cast<size_t>(-32), 32);
    touch(0, false, 0, 99);
    CHECK(is(end_sectors(), 100, 0, 100, 97));
    forget_sectors();
}

CASE(sector_maps_are_freed) {
    CHECK(!unit::leaks([] {
        for (unsigned turn = 0; turn < 20; ++turn) {
            host_writes(0, 1);
            forget_sectors();
        }
    }));
}
