// Tests of grouping the accesses of lanes into requests of warps.
#include "checks/counting/requests.h"

#include "checks/counting/request.h"
#include "grid.h"
#include "seed.h"
#include "unit.h"

using namespace sim::checks;
using unit::Grid;

namespace {

const char code[4] = {};

AccessSite& site_of(Grid& grid, unsigned place, unsigned size_log2 = 2) {
    SiteTable& sites = grid.thread(0, 0).worker->sites;
    AccessSite* site = sites.variant(sites.find(code + place), Space::shared, Access::read, size_log2);
    if (!site->touched) site->counters = {};
    return *site;
}

void access(Grid& grid, AccessSite& site, unsigned thread, uint32_t entry, unsigned block = 0) {
    if (site.owner != &grid.thread(block, thread)) bind_log(site, grid.thread(block, thread));
    *site.next++ = entry;
}

bool equal(const Counters& a, const Counters& b) { return memcmp(&a, &b, sizeof a) == 0; }

// Returns the counters when, for each k, the k-th accesses of all lanes are counted as one request.
Counters together(Grid& grid, const AccessSite& like, const uint32_t (*entry)[16], const unsigned* length) {
    AccessSite site = like;
    site.counters = {};
    RequestCounter counter(site, *grid.thread(0, 0).worker);
    for (unsigned k = 0; k < 16; ++k) {
        Request request = {};
        for (unsigned lane = 0; lane < 32; ++lane) {
            if (k >= length[lane]) continue;
            request.lane[request.count] = lane;
            request.entry[request.count++] = entry[lane][k];
        }
        if (request.count) counter.count(request);
    }
    return site.counters;
}

}  // namespace

CASE(accesses_of_lanes_are_counted_request_by_request) {
    unit::Random random(8);
    for (unsigned turn = 0; turn < 2000; ++turn) {
        Grid grid(1, 32);
        AccessSite& site = site_of(grid, 0);
        uint32_t entry[32][16];
        unsigned length[32], longest = 1 + random.below(turn % 3 ? 3 : 16);
        uint32_t step[16], lanes = turn % 4 ? ~0u : static_cast<uint32_t>(random.word());
        for (uint32_t& one : step) one = random.below(5) ? random.below(4) - 1 : random.below(64);
        for (unsigned lane = 0; lane < 32; ++lane) {
            length[lane] = lanes >> lane & 1 ? (turn % 2 ? longest : random.below(longest + 1)) : 0;
            for (unsigned k = 0; k < 16; ++k)
                entry[lane][k] = 5000 + step[k] * lane + (k % 5 == 4 ? random.below(40) : 0);
        }
        for (unsigned lane = 0; lane < 32; ++lane)  // the first half of each lane's accesses, then the rest
            for (unsigned k = 0; k < length[lane] / 2; ++k) access(grid, site, lane, entry[lane][k]);
        for (unsigned lane = 32; lane-- > 0;)
            for (unsigned k = length[lane] / 2; k < length[lane]; ++k) access(grid, site, lane, entry[lane][k]);
        flush_warp(*grid.thread(0, 0).warp);
        CHECK(equal(site.counters, together(grid, site, entry, length)));
        CHECK(!site.owner && !site.touched && grid.thread(0, 0).worker->touched.empty());
    }
}

// Entries that were in a log when it was emptied are not counted again.
CASE(lanes_with_fewer_accesses_are_not_counted_again) {
    Grid grid(1, 32);
    AccessSite& site = site_of(grid, 0);
    for (bool all : {true, false}) {
        site.counters = {};
        for (unsigned lane = 0; lane < 32; ++lane)
            for (unsigned k = 0; k < (all || lane == 9 ? 3 : 1); ++k) access(grid, site, lane, 100 * k + lane);
        flush_warp(*grid.thread(0, 0).warp);
        CHECK_EQUAL(site.counters.requests, 3);
        CHECK_EQUAL(site.counters.accesses, all ? 96 : 34);
        CHECK_EQUAL(site.counters.bytes, all ? 384 : 136);
    }
}

CASE(request_may_have_few_lanes) {
    const struct {
        unsigned size_log2, lanes[2];
        uint32_t entries[2];
        unsigned wavefronts;
    } requests[] = {{2, {3, 7}, {0, 32}, 2},  // two words in one bank
                    {2, {3, 7}, {0, 1}, 1},
                    {4, {20, 25}, {9, 9}, 1},  // both lanes are in one half of the warp
                    {4, {5, 25}, {9, 9}, 2},
                    {4, {5, 7}, {9, 9}, 1}};
    for (auto& request : requests) {
        Grid grid(1, 32);
        AccessSite& site = site_of(grid, 2, request.size_log2);
        for (unsigned i : {0, 1}) access(grid, site, request.lanes[i], request.entries[i]);
        CHECK_EQUAL(grid.thread(0, 0).worker->touched.size(), 1);
        flush_warp(*grid.thread(0, 0).warp);
        CHECK_EQUAL(site.counters.requests, 1);
        CHECK_EQUAL(site.counters.accesses, 2);
        CHECK_EQUAL(site.counters.wavefronts, request.wavefronts);
    }
}

CASE(warps_at_one_site_have_separate_logs) {
    for (bool settled : {false, true}) {
        Grid grid(2, 64);
        AccessSite &one = site_of(grid, 0), &two = site_of(grid, 1);
        for (unsigned b = 0; b < 2; ++b)
            for (unsigned w = 0; w < 2; ++w) grid.block(b).warps[w].ready = !settled;
        for (unsigned turn = 0; turn < 3; ++turn)
            for (unsigned warp : {0u, 1u})
                for (unsigned block : {0u, 1u})
                    for (unsigned lane : {3u, 7u}) {
                        access(grid, one, 32 * warp + lane, lane, block);
                        access(grid, two, 32 * warp + lane, lane, block);
                    }
        // The accesses of a warp are counted when another warp's accesses arrive, unless the first warp has runnable
        // lanes.
        CHECK_EQUAL(one.counters.requests, settled ? 11 : 0);
        flush_warp(*grid.thread(0, 32).warp);
        CHECK_EQUAL(one.counters.requests, settled ? 11 : 3);
        CHECK_EQUAL(two.counters.requests, settled ? 11 : 3);
        flush_block(*state_of(grid.block(1)));
        CHECK_EQUAL(one.counters.requests, settled ? 12 : 9);
        CHECK_EQUAL(two.counters.accesses, settled ? 24 : 18);
        flush_block(*state_of(grid.block(0)));
        CHECK_EQUAL(one.counters.requests, 12);
        CHECK_EQUAL(two.counters.accesses, 24);
        CHECK(grid.thread(0, 0).worker->touched.empty());
    }
}

CASE(dropped_logs_are_not_counted) {
    for (bool parked : {false, true}) {
        Grid grid(1, 64);
        AccessSite& site = site_of(grid, 0);
        grid.block(0).warps[0].ready = parked;
        for (unsigned lane : {0, 1}) access(grid, site, lane, 1);
        if (parked) access(grid, site, 32, 1);
        WorkerState& worker = *grid.thread(0, 0).worker;
        drop_logs(worker);
        CHECK(worker.touched.empty() && !site.owner && !site.touched);
        for (unsigned w : {0u, 1u}) CHECK(!grid.thread(0, 32 * w).warp->parked);
        flush_block(*state_of(grid.block(0)));
        CHECK_EQUAL(site.counters.requests, 0);
        access(grid, site, 5, 1);
        flush_site(site);
        CHECK(site.counters.requests == 1 && site.counters.accesses == 1);
    }
}

CASE(logs_are_reused) {
    CHECK(!unit::leaks([] {
        Grid grid(1, 64);
        AccessSite* sites[] = {&site_of(grid, 0), &site_of(grid, 1)};
        // Both warps have runnable lanes, and each warp's accesses empty the log of the other warp.
        for (unsigned w : {0u, 1u}) grid.block(0).warps[w].ready = true;
        for (unsigned turn = 0; turn < 10; ++turn) {
            for (AccessSite* site : sites)
                for (unsigned thread : {0u, 32u}) access(grid, *site, thread, 1);
            flush_warp(*grid.thread(0, 32).warp);
            for (AccessSite* site : sites) access(grid, *site, 0, 1);  // warp 0 continues with its own log
            for (AccessSite* site : sites) CHECK_EQUAL(site->counters.requests, 5 * turn + 1);
            flush_warp(*grid.thread(0, 0).warp);
            for (AccessSite* site : sites) CHECK_EQUAL(site->counters.requests, 5 * turn + 3);
            for (AccessSite* site : sites)
                for (unsigned thread : {0u, 32u, 1u}) access(grid, *site, thread, 1);
            flush_block(*state_of(grid.block(0)));
            for (AccessSite* site : sites) CHECK_EQUAL(site->counters.requests, 5 * turn + 5);
        }
    }));
}
