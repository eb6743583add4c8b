// Tests of copies, memsets and host accesses that streams order, or fail to order.
#include "checks/synchronization/streams.h"

#include "checks/counting/counting.h"
#include "found.h"
#include "grid.h"
#include "runtime/streams.h"
#include "unit.h"

using namespace sim::checks;
using unit::Grid;

namespace {

const char code[16] = {};
alignas(64) char memory[256];
char of_the_host[64];

uintptr_t at(size_t offset) { return reinterpret_cast<uintptr_t>(memory) + offset; }

Region& begin(RegionKind = RegionKind::tensor) {
    forget_findings();
    forget_streams();
    forget_names();
    forget_regions();
    const int64_t shape[] = {16};
    return add_allocation({sim::events::MemoryKind::tensor, memory, 64, "x", "float32", 1, shape, nullptr});
}

// A stream. Calling the object runs an operation in the stream, after all operations in `known`.
struct Stream {
    uint32_t lane;
    uint32_t count = 0;
    sim::Clock known = {};

    template <typename F>
    void operator()(const char* call, F what, bool alone = false) {
        sim::Work work;
        work.call = call;
        work.address = code + lane;
        work.stream = 10 + lane;
        work.lane = lane;
        work.number = ++count;
        work.known = &known;
        work.alone = alone;
        sim::events::work_begin(work, false);
        what();
        sim::events::work_begin({}, false);  // a later operation begins before this one ends
        sim::events::work_end();
        known.raise(lane, count);
    }
};

bool is_race(const Finding& found, const char* call, const char* other, Access access, long offset) {
    return check_of(found.kind) == Check::racecheck && !strcmp(name_of(found.kind), "between_streams") &&
           found.count == 1 && !strcmp(found.side.call, call) && !strcmp(found.other.call, other) &&
           found.place.offset == offset && static_cast<Access>(found.other.access) == access &&
           !found.side.has_thread && !found.other.has_thread;
}

}  // namespace

CASE(copies_of_one_stream_are_ordered_and_of_two_streams_are_not) {
    for (bool ordered : {false, true}) {
        begin();
        Stream one{1}, two{2};
        one("a copy", [] { work_writes(at(8), 8); });
        one("another", [] { work_reads(at(8), 8); });
        CHECK_EQUAL(finding_count(), 0);
        if (ordered) two.known.join(one.known);
        two("a third", [] { work_reads(at(12), 4); });
        CHECK_EQUAL(finding_count(), !ordered);
        if (ordered) continue;
        CHECK(is_race(finding(0), "a third", "a copy", Access::write, 12) && finding(0).bytes == 4);
        CHECK(finding(0).side.stream == 12 && finding(0).other.stream == 11 && finding(0).kernel == ~0u);
        CHECK(finding(0).side.address == code + 2 && finding(0).other.address == code + 1);
        CHECK(past_launches().back().address == code + 2);
    }
}

CASE(write_races_with_each_unordered_read) {
    for (unsigned readers = 1; readers < 3; ++readers) {
        begin();
        Stream one{1}, two{2}, three{3};
        one("first", [] { work_reads(at(0), 64); });
        if (readers > 1) two("second", [] { work_reads(at(4), 4); });
        three.known.join(readers > 1 ? one.known : sim::Clock());
        three("a fill", [] { work_writes(at(4), 4); });
        CHECK_EQUAL(finding_count(), 1);
        CHECK(is_race(finding(0), "a fill", readers > 1 ? "second" : "first", Access::read, 4));
    }
}

CASE(copies_before_the_second_stream_are_remembered) {
    for (bool waited : {false, true}) {
        begin();
        Stream one{1}, two{2};
        one("a copy", [] { work_writes(at(16), 4); }, true);
        one("a copy back", [] { work_reads(at(32), 4); }, true);
        if (waited) sim::streams::host_waited_for(one.known);
        two("a fill", [] { work_writes(at(0), 64); });
        CHECK_EQUAL(finding_count(), waited ? 0 : 2);
        if (waited) continue;
        CHECK(is_race(finding(0), "a fill", "a copy", Access::write, 16) && finding(0).bytes == 4);
        CHECK(is_race(finding(1), "a fill", "a copy back", Access::read, 32));
        CHECK(finding(0).other.address == code + 1);
    }
    sim::streams::reset();
}

CASE(use_in_another_stream_before_ordered_allocation_is_reported) {
    Region& region = begin();
    Stream one{1}, two{2};
    one("cudaMallocAsync", [&] { work_allocates(region); });
    region.allocated_at = code + 5;
    two("a fill", [] { work_writes(at(20), 4); });
    CHECK_EQUAL(finding_count(), 1);
    CHECK(is_race(finding(0), "a fill", "cudaMallocAsync", Access::allocation, 20) && finding(0).bytes == 0);
    CHECK(finding(0).other.address == code + 5);
    two("cudaFreeAsync", [&] { work_frees(region, code + 6); });
    CHECK_EQUAL(finding_count(), 2);
    CHECK(is_race(finding(1), "cudaFreeAsync", "cudaMallocAsync", Access::allocation, 0));
}

CASE(host_read_before_the_end_of_a_copy_is_reported) {
    const auto own = reinterpret_cast<uintptr_t>(of_the_host);
    for (bool waited : {false, true}) {
        begin();
        Stream one{1};
        one("a copy", [&] { work_writes_host(own + 8, 16); });
        if (waited) sim::streams::host_waited_for(one.known);
        host_touches_own(own, 8, false, code + 3);
        host_touches_own(own + 24, 8, false, code + 3);
        CHECK_EQUAL(finding_count(), 0);
        host_touches_own(own + 20, 8, true, code + 3);
        CHECK_EQUAL(finding_count(), !waited);
        if (waited) continue;
        const Finding& found = finding(0);
        CHECK(!strcmp(name_of(found.kind), "with_host") && !strcmp(found.side.call, "the host") && found.bytes == 8);
        CHECK(found.side.address == code + 3 && !strcmp(found.other.call, "a copy") && found.other.address == code + 1);
        CHECK(found.place.bytes == 16 && found.place.offset == 12);
        CHECK(found.place.kind == RegionKind::pageable_host && static_cast<Access>(found.side.access) == Access::write);
    }
    sim::streams::reset();
}

CASE(copy_of_uninitialized_memory_reports_the_number_of_bytes) {
    Region& region = begin();
    Stream one{1};
    one("a copy", [] { work_copies_out(at(0), 64); });
    CHECK_EQUAL(finding_count(), 0);  // the region has no shadow cells yet
    track(region);
    for (unsigned i : {2u, 3u, 6u}) region.cells[i].write = written_before;
    one("a copy", [] { work_copies_out(at(8), 8); });
    one("a copy", [] { work_copies_out(reinterpret_cast<uintptr_t>(of_the_host), 8); });
    CHECK_EQUAL(finding_count(), 0);
    one("a copy", [] { work_copies_out(at(8), 24); });
    CHECK_EQUAL(finding_count(), 1);
    CHECK(!strcmp(name_of(finding(0).kind), "uninitialized_copy") && check_of(finding(0).kind) == Check::initcheck);
    CHECK(unit::number_in(finding(0)) == 12 && finding(0).place.offset == 16 && finding(0).side.address == code + 1);
    one("a copy", [] { work_copies_out(at(34), 3); });
    CHECK_EQUAL(unit::number_in(finding(0)), 12);  // merged with the first finding
    forget_findings();
    one("a copy", [] { work_copies_out(at(34), 3); });
    CHECK(unit::number_in(finding(0)) == 3 && finding(0).place.offset == 34);
    region.initialized = true;
    forget_findings();
    one("a copy", [] { work_copies_out(at(34), 3); });
    CHECK_EQUAL(finding_count(), 0);
}

CASE(past_launch_keeps_its_shape_and_kernel) {
    begin();
    forget_kernels();
    kernel_index("another");
    Stream one{1};
    one(nullptr, [] {
        Grid grid(4, 64, 2);
        const PastLaunch& past = past_launches().back();
        CHECK(past.kernel == 1 && past.stream == 11 && past.lane == 1 && past.number == 1 && !past.call);
        CHECK(past.grid.x == 4 && past.block.x == 64 && past.cluster.x == 2);
        CHECK(past.grid.z == 1 && past.block.z == 1 && past.cluster.z == 1 && past.blocks == 4);
    });
    forget_kernels();
}

CASE(unordered_kernel_and_copy_are_named_with_their_streams) {
    begin();
    Stream one{1}, two{2};
    one("a copy", [] { work_writes(at(8), 4); });
    two(nullptr, [] {
        Grid grid(1, 32);
        on_access<2, false>(grid.thread(0, 3), at(8), code + 5);
        CHECK(finding_count() == 1 && !strcmp(name_of(finding(0).kind), "between_streams"));
        const Side &side = finding(0).side, &other = finding(0).other;
        CHECK(side.in_stream && side.stream == 12 && !side.call && side.has_thread && side.thread == 3);
        CHECK(other.in_stream && other.stream == 11 && !strcmp(other.call, "a copy") && !other.has_thread);
    });
}
