// Tests of sites, the code addresses of accesses: their ids, and a worker's state for each kind of access.
#include "checks/core/site.h"

#include "checks/counting/requests.h"
#include "unit.h"

using namespace sim::checks;

namespace {

constexpr size_t most = 0xffff;  // ids have 16 bits, and 0 means no id
const char code[most + 100] = {};

// Frees the ids that a test case has assigned.
struct Numbers {
    size_t before = site_count();
    ~Numbers() { forget_site_ids(before); }
};

}  // namespace

CASE(sites_are_numbered_until_numbers_run_out) {
    Numbers numbers;
    CHECK(!is_site(code));
    const uint16_t first = site_id(code), second = site_id(code + 1);
    CHECK(first != 0 && second == first + 1 && site_id(code) == first && is_site(code));
    CHECK(site_address(first) == code && site_address(second) == code + 1 && !site_address(0));
    CHECK(!site_address(static_cast<uint16_t>(second + 1)));
    for (const char& place : code) {
        uint16_t id = site_id(&place);
        CHECK_EQUAL(id, first + (&place - code) < static_cast<long>(most) ? first + (&place - code) : 0);
    }
    CHECK_EQUAL(site_count(), most);
    forget_site_ids(second);  // forget this id and all later ones
    CHECK(is_site(code) && site_id(code) == first && site_address(first) == code && site_id(site_address(1)) == 1);
    CHECK(!is_site(code + 1) && !site_address(second) && site_id(code + 7) == second);
    forget_site_ids(numbers.before);
    CHECK(!is_site(code) && !is_site(code + 7));
}

CASE(place_has_one_site_per_kind_of_access) {
    Numbers numbers;
    SiteTable sites;
    AccessSite* one = sites.find(code);
    CHECK(one->address == code && one->id == site_id(code) && sites.find(code) == one && sites.find(code + 1) != one);
    CHECK(sites.variant(one, Space::global, Access::write, 2) == one);  // a new site takes the kind of its first access
    CHECK(sites.variant(one, Space::global, Access::write, 2) == one && sites.find(code) == one);
    AccessSite* kinds[] = {one, sites.variant(one, Space::global, Access::read, 0),
                           sites.variant(one, Space::shared, Access::write, 0),
                           sites.variant(one, Space::shared, Access::read, 2)};
    for (AccessSite* kind : kinds) {
        CHECK(sites.variant(kinds[2], kind->space, kind->access, kind->size_log2) == kind);
        CHECK(sites.find(code) == kind && kind->address == code && kind->id == one->id);
        for (AccessSite* other : kinds)
            CHECK(other == kind || other->space != kind->space || other->access != kind->access ||
                  other->size_log2 != kind->size_log2);
    }
    unsigned count = 0;
    sites.each([&](AccessSite& site) { count += site.address == code; });
    CHECK_EQUAL(count, 4);
    // Find enough code addresses that some of them share a slot of the table.
    for (unsigned round = 0; round < 2; ++round)
        for (unsigned place = 0; place < 8192; ++place) CHECK(sites.find(code + place)->address == code + place);
    sites.clear();
    count = 0;
    sites.each([&](AccessSite&) { ++count; });
    CHECK(count == 0 && sites.find(code)->limit == 0);
}

CASE(site_data_ends_with_its_table) {
    Numbers numbers;
    CHECK(!unit::leaks([] {
        for (unsigned turn = 0; turn < 2; ++turn) {
            SiteTable sites;
            for (unsigned place = 0; place < 128; ++place) {
                AccessSite* site = sites.variant(sites.find(code + place), Space::shared, Access::read, 2);
                sites.variant(site, Space::global, Access::read, 2);
                if (place < 4 && !(site->log = static_cast<RequestLog*>(calloc(1, sizeof(RequestLog))))) abort();
            }
        }
    }));
}
