// Tests of traces: which requests of warps are recorded, and what a record contains.
#include "checks/report/trace.h"

#include "grid.h"
#include "unit.h"

using namespace sim::checks;
using unit::Grid;

CASE(traced_request_keeps_its_addresses) {
    Grid grid(2, 64);
    Region region = {};
    region.base = 0x10000;
    strcpy(region.name, "scores");
    AccessSite site = {};
    site.id = 9;
    site.size_log2 = 3;
    site.access = Access::write;
    site.origin = 0x8000;
    const unsigned kernel = the_launch.kernel;
    the_launch.kernel = 3;
    const struct {
        Space space;
        bool has_region;
        uint32_t entry;
        int64_t offset;
    } requests[] = {
        {Space::global, true, 0x1002, 16},
        {Space::global, true, 0x90001000, 0x90000000ll * 8},  // the distance is more than half of the 32-bit range
        {Space::global, false, 0x1002, 0x8010},
        {Space::shared, true, 0x12, 0x90},
        {Space::shared, false, 0x12, 0x90},
        {Space::distributed, true, 0u - 2, -0x8010}};  // the address is below the block's own shared memory
    unsigned number = 0;
    for (auto& one : requests) {
        Request request = {};
        for (unsigned lane : {1, 5, 31}) {
            request.lane[request.count] = lane;
            request.entry[request.count++] = one.entry + (lane == 5);
        }
        site.space = one.space;
        site.region = one.has_region ? &region : nullptr;
        keep_request(site, *grid.thread(0, 40).warp, request);
        CHECK_EQUAL(traces.size(), number + 1);
        const TracedRequest& kept = traces[number];
        CHECK(kept.site == 9 && kept.size == 8 && kept.access == Access::write && kept.space == one.space);
        CHECK(kept.kernel == 3 && kept.serial == grid.thread(0, 0).block->first_serial && kept.warp == 1);
        CHECK_EQUAL(kept.number, number++);
        CHECK_EQUAL(kept.lanes, 1u << 1 | 1u << 5 | 1u << 31);
        CHECK(!strcmp(kept.name, one.has_region ? "scores" : ""));
        for (unsigned lane : {1, 5, 31}) CHECK_EQUAL(kept.offset[lane], one.offset + (lane == 5 ? 8 : 0));
    }
    traces.clear();
    the_launch.kernel = kernel;
}

CASE(first_requests_of_each_warp_of_the_first_block_are_traced) {
    Grid grid(2, 64);
    AccessSite site = {};
    Request request = {};
    const WarpState &warp = *grid.thread(0, 0).warp, &next = *grid.thread(0, 40).warp;
    CHECK(!is_traced(site, warp));  // no trace was requested
    trace_limit = 2;
    for (unsigned i = 0; i < 3; ++i) {
        CHECK_EQUAL(is_traced(site, warp), i < 2);
        CHECK(is_traced(site, next) && !is_traced(site, *grid.thread(1, 0).warp));
        keep_request(site, warp, request);
    }
    trace_limit = 0;
    traces.clear();
}
