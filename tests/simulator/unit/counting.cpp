// Tests of counters: per kernel, per instruction address, and of accesses by the host.
#include "checks/counting/counting.h"

#include "grid.h"
#include "unit.h"

using namespace sim::checks;
using unit::Grid;

namespace {

Region region_of(RegionKind kind, size_t bytes = 100) {
    Region region = {};
    region.kind = kind;
    region.bytes = bytes;
    return region;
}

}  // namespace

CASE(kernel_has_one_record_for_names_of_any_length) {
    forget_kernels();
    char name[300];
    memset(name, 'x', sizeof name);
    name[299] = 0;
    CHECK(kernel_index("one") == 0 && kernel_index("two") == 1 && kernel_index("one") == 0);
    CHECK(kernel_index(name) == 2 && kernel_index(name) == 2 && kernel_index("tw") == 3 && kernel_count() == 4);
    CHECK(!strcmp(kernel(1).name, "two") && !strncmp(kernel(2).name, name, 255) && strlen(kernel(2).name) == 255);
    CHECK(kernel(0).sites->empty() && kernel(0).barrier_sites->empty() && kernel(0).operand_sites->empty());
    CHECK(kernel(0).tensor_sites->empty());
    name[254] = 'y';
    CHECK_EQUAL(kernel_index(name), 4);
    CHECK(kernel(0).sites != kernel(1).sites && kernel(0).tensor_sites != kernel(0).barrier_sites);
    forget_kernels();
    CHECK_EQUAL(kernel_count(), 0);
}

CASE(counts_at_one_place_are_added) {
    Growable<PlaceCount> counts;
    add_count(counts, 7, 3);
    add_count(counts, 8, 1);
    add_count(counts, 7, 2);
    CHECK(counts.size() == 2 && counts[0].site == 7 && counts[0].count == 5);
    CHECK(counts[1].site == 8 && counts[1].count == 1);
}

CASE(site_counters_move_to_their_kernel) {
    forget_kernels();
    const char code[2] = {};
    Grid grid(1, 32);
    KernelRecord& record = kernel(kernel_index("collected"));
    SiteTable& sites = grid.thread(0, 0).worker->sites;
    const struct {
        unsigned code;
        Space space;
        Access access;
        unsigned size_log2;
    } kinds[] = {{0, Space::global, Access::read, 2},
                 {1, Space::global, Access::read, 2},
                 {0, Space::shared, Access::read, 2},
                 {0, Space::global, Access::write, 2},
                 {0, Space::global, Access::read, 4}};
    for (unsigned turn = 1; turn <= 2; ++turn) {
        for (auto& kind : kinds) {
            AccessSite* site = sites.variant(sites.find(code + kind.code), kind.space, kind.access, kind.size_log2);
            site->counters.requests = 1;
            site->counters.bytes = 10;
        }
        collect(record);
        CHECK_EQUAL(record.sites->size(), 5);
        for (auto& kind : kinds) {
            unsigned same = 0;
            for (const SiteCounters& counted : *record.sites) {
                bool is_this = counted.site == site_id(code + kind.code) && counted.space == kind.space &&
                               counted.access == kind.access && counted.size == 1u << kind.size_log2;
                same += is_this && counted.counters.requests == turn && counted.counters.bytes == 10 * turn;
            }
            CHECK_EQUAL(same, 1);
        }
    }
    sites.each([](AccessSite& site) { CHECK_EQUAL(site.counters.requests, 0); });
}

CASE(scratch_memory_is_the_peak_of_allocated_bytes) {
    forget_regions();
    forget_run_counters();
    CHECK_EQUAL(scratch_bytes(), 0);
    for (RegionKind kind : {RegionKind::device_allocation, RegionKind::async_allocation, RegionKind::managed})
        count_allocation(region_of(kind));
    for (RegionKind kind : {RegionKind::tensor, RegionKind::device_variable}) {
        count_allocation(region_of(kind, 1000));
        count_release(region_of(kind, 1000));
    }
    CHECK_EQUAL(scratch_bytes(), 300);
    for (RegionKind kind : {RegionKind::pinned_host, RegionKind::device_heap}) {
        forget_run_counters();
        count_allocation(region_of(kind, 40));
        CHECK_EQUAL(scratch_bytes(), 40);
    }
    forget_run_counters();
    for (RegionKind kind : {RegionKind::device_allocation, RegionKind::async_allocation, RegionKind::managed})
        count_allocation(region_of(kind));
    count_release(region_of(RegionKind::managed));
    count_release(region_of(RegionKind::device_allocation));
    count_allocation(region_of(RegionKind::device_allocation, 150));
    CHECK_EQUAL(scratch_bytes(), 300);
    count_allocation(region_of(RegionKind::device_allocation, 51));
    CHECK_EQUAL(scratch_bytes(), 301);
    forget_run_counters();
    CHECK_EQUAL(scratch_bytes(), 0);
}

CASE(copy_counts_as_traffic_where_it_accesses_device_memory) {
    const Region device = region_of(RegionKind::device_allocation), tensor = region_of(RegionKind::tensor),
                 managed = region_of(RegionKind::managed), pinned = region_of(RegionKind::pinned_host);
    const struct {
        const Region *to, *from;
        unsigned copied, host;
    } copies[] = {{&device, &tensor, 20, 0},  {nullptr, nullptr, 0, 0},   {&pinned, &managed, 0, 0},
                  {&device, nullptr, 10, 0},  {&tensor, nullptr, 10, 10}, {&tensor, &managed, 10, 10},
                  {nullptr, &device, 10, 10}, {&pinned, &tensor, 10, 10}, {&managed, &device, 10, 10}};
    for (auto& copy : copies) {
        forget_run_counters();
        count_copy(copy.to, copy.from, 10);
        CHECK_EQUAL(run_counters.copied_bytes, copy.copied);
        CHECK_EQUAL(run_counters.host_bytes, copy.host);
    }
    run_counters.host_bytes += 4;
    CHECK_EQUAL(run_counters.host_bytes, 14);
    forget_run_counters();
    CHECK(run_counters.host_bytes == 0 && run_counters.copied_bytes == 0);
}
