// Tests of findings: which ones are merged, which example is kept, and the limit of their number.
#include "checks/report/findings.h"

#include "checks/core/state.h"
#include "found.h"
#include "grid.h"
#include "unit.h"

using namespace sim::checks;

namespace {

const char code[64] = {};

Finding race(unsigned here, unsigned there, uint32_t thread = 0) {
    Finding finding = new_finding(FindingKind::within_block);
    finding.kernel = 0;
    finding.launch = 5;
    finding.side.address = code + here;
    finding.side.access = static_cast<uint8_t>(Access::write);
    finding.side.serial = 3;
    finding.side.thread = thread;
    finding.other.address = code + there;
    finding.other.access = static_cast<uint8_t>(Access::read);
    return finding;
}

// Returns the same finding with both threads exchanged.
Finding turned(Finding finding) {
    Side side = finding.side;
    finding.side = finding.other;
    finding.other = side;
    return finding;
}

// Removes all findings and sets the limit of their number.
void start(size_t limit = 1000) {
    forget_findings();
    set_finding_limit(limit);
}

}  // namespace

CASE(findings_of_one_kind_at_one_place_are_counted) {
    start();
    for (unsigned i = 0; i < 10; ++i) add_finding(race(1, 2, i));
    CHECK_EQUAL(finding_count(), 1);
    CHECK_EQUAL(finding(0).count, 10);
}

CASE(race_is_one_finding_from_either_side) {
    start();
    add_finding(race(1, 2));
    add_finding(turned(race(1, 2)));
    CHECK_EQUAL(finding_count(), 1);
    CHECK_EQUAL(finding(0).count, 2);
    // If read and write are exchanged, it is a different race.
    Finding exchanged = race(1, 2);
    exchanged.side.access = static_cast<uint8_t>(Access::read);
    exchanged.other.access = static_cast<uint8_t>(Access::write);
    add_finding(exchanged);
    CHECK_EQUAL(finding_count(), 2);
}

CASE(different_places_or_texts_are_different_findings) {
    start();
    add_finding(race(1, 2));
    Finding other = race(1, 2);
    other.kind = FindingKind::within_warp;
    add_finding(other);
    other = race(1, 2);
    other.payload = Reason{"x"};
    add_finding(other);
    other = race(1, 2);
    other.place.known = true;
    other.place.id = 7;
    add_finding(other);
    other.place.id = 8;
    add_finding(other);
    add_finding(race(1, 3));
    add_finding(race(2, 2));
    add_finding(race(1, 1));
    CHECK_EQUAL(finding_count(), 8);
    for (size_t i = 0; i < finding_count(); ++i) CHECK_EQUAL(finding(i).count, 1);
}

CASE(example_is_the_earliest_occurrence) {
    start();
    add_finding(race(1, 2, 9));
    add_finding(race(1, 2, 4));
    add_finding(race(1, 2, 6));
    CHECK_EQUAL(finding(0).side.thread, 4);
    Finding other = race(1, 2, 500);
    other.side.serial = 2;  // an earlier block than in the first finding
    add_finding(other);
    CHECK(finding(0).side.serial == 2 && finding(0).side.thread == 500);
    other.side.serial = 90;
    other.launch = 4;  // an earlier launch than in the first finding
    add_finding(other);
    CHECK_EQUAL(finding(0).side.serial, 90);
    other.side.serial = 1;
    other.launch = 6;
    add_finding(other);
    CHECK_EQUAL(finding(0).side.serial, 90);
    CHECK_EQUAL(finding(0).count, 6);
}

CASE(leaked_bytes_are_added) {
    start();
    Finding leak = race(1, 1);
    leak.kind = FindingKind::leak;
    leak.payload = LeakedBytes{100};
    add_finding(leak);
    leak.payload = LeakedBytes{28};
    leak.count = 3;
    add_finding(leak);
    CHECK(unit::number_in(finding(0)) == 128 && finding(0).count == 4);
    start();
    Finding mask = race(1, 1);
    mask.payload = Mask{0xffff};
    for (int i = 0; i < 16; ++i) add_finding(mask);
    CHECK(unit::number_in(finding(0)) == 0xffff && finding(0).count == 16);
}

CASE(findings_beyond_the_limit_are_dropped_and_counted) {
    start(3);
    for (unsigned i = 0; i < 5; ++i) add_finding(race(i, i));
    add_finding(race(4, 4));  // beyond the limit, so dropped
    add_finding(race(0, 0));  // exists, so it is counted
    CHECK(finding_count() == 3 && dropped_findings() == 3 && finding(0).count == 2);
    start();
    CHECK(finding_count() == 0 && dropped_findings() == 0);
}

CASE(latest_findings_can_be_truncated) {
    start();
    for (unsigned i = 0; i < 5; ++i) add_finding(race(i, i));
    truncate_findings(2);
    CHECK_EQUAL(finding_count(), 2);
    for (unsigned i : {0, 1, 4}) add_finding(race(i, i));
    CHECK(finding_count() == 3 && finding(0).count == 2 && finding(1).count == 2 && finding(2).count == 1);
    truncate_findings(2);
    add_finding(race(4, 4));  // the earlier finding for this race was removed, so this finding is new
    CHECK(finding_count() == 3 && finding(2).count == 1);
}

CASE(finding_names_its_launch_and_kernel) {
    unit::Grid grid(1, 64);
    const unsigned kernel = the_launch.kernel;
    the_launch.kernel = 7;
    Finding made = finding_at(FindingKind::within_block, grid.thread(0, 40), code + 3);
    CHECK(made.kernel == 7 && made.launch == grid.launch().id && made.count == 1 &&
          check_of(made.kind) == Check::racecheck);
    CHECK(made.side.thread == 40 && made.side.has_thread && made.side.address == code + 3);
    the_launch.launch = nullptr;
    made = finding_at(FindingKind::within_block, grid.thread(0, 40), code + 3);
    CHECK(made.kernel == ~0u && made.launch == 0);
    the_launch.launch = &grid.launch();
    the_launch.kernel = kernel;
}

CASE(finding_without_a_line_has_the_line_of_the_launch) {
    unit::Grid grid(1, 32);
    start();
    grid.launch().caller = code + 20;
    for (unsigned i = 0; i < 3; ++i) {
        Finding finding = race(i, i);
        finding.launch = grid.launch().id + (i == 1);
        if (i == 2) finding.side.fallback = code + 21;
        add_finding(finding);
        CHECK(finding_count() == i + 1 && sim::checks::finding(i).side.fallback == (i == 0   ? code + 20
                                                                                    : i == 1 ? nullptr
                                                                                             : code + 21));
    }
}

CASE(place_describes_the_memory_at_the_time_of_the_finding) {
    Region region = {};
    region.base = 1000;
    region.bytes = 64;
    region.id = 9;
    region.kind = RegionKind::pinned_host;
    region.element_bytes = 4;
    region.ndim = 2;
    region.shape[0] = 4;
    region.shape[1] = 4;
    strcpy(region.name, "scores");
    strcpy(region.dtype, "float32");
    Place place = place_of(&region, 996);
    CHECK(place.known && place.offset == -4 && place.ndim == 2 && place.shape[1] == 4);
    CHECK(place.id == 9 && place.bytes == 64 && place.element_bytes == 4 && place.kind == RegionKind::pinned_host);
    CHECK(!strcmp(place.name, "scores") && !strcmp(place.dtype, "float32") && place.shape[0] == 4);
    memset(region.name, 'x', sizeof region.name);
    memset(region.dtype, 'y', sizeof region.dtype);
    place = place_of(&region, 1000);
    CHECK(strlen(place.name) == sizeof place.name - 1 && strlen(place.dtype) == sizeof place.dtype - 1);
    CHECK(!place_of(nullptr, 996).known);
}
