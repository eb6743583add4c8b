// Tests of regions: the region of an address, and shadow cells when granules become smaller.
#include "checks/core/region.h"

#include <malloc.h>
#include <string.h>

#include "checks/synchronization/reader_set.h"

#include "seed.h"
#include "sim/globals.h"
#include "unit.h"

using namespace sim;
using namespace sim::checks;

namespace {

alignas(256) char memory[4096];

uintptr_t at(size_t offset) { return reinterpret_cast<uintptr_t>(memory) + offset; }

Region& allocate(size_t offset, size_t bytes, const char* dtype = "float32",
                 events::MemoryKind kind = events::MemoryKind::tensor) {
    const int64_t shape[] = {static_cast<int64_t>(bytes / 4)};
    return add_allocation({kind, memory + offset, bytes, "x", dtype, 1, shape, nullptr});
}

// Returns the size of the process's address space in bytes.
size_t mapped() {
    size_t pages = 0;
    FILE* file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%zu", &pages) != 1) abort();
    fclose(file);
    return pages * 4096;
}

const bool refused_at_first = cells_were_refused();  // evaluated before any test case runs

}  // namespace

CASE(address_is_found_in_the_region_that_holds_it) {
    forget_regions();
    Region& first = allocate(256, 100);
    Region& second = allocate(512, 4);
    Region& third = allocate(516, 8);  // directly after `second`
    Region& before = allocate(252, 4);
    CHECK(find_region(at(255)) == &before && find_region(at(256)) == &first);
    CHECK(release_allocation(at(252), nullptr) == &before);
    CHECK(!find_region(at(255)) && find_region(at(256)) == &first && find_region(at(355)) == &first);
    CHECK(!find_region(at(356)) && !find_region(at(511)));
    CHECK(find_region(at(515)) == &second && find_region(at(516)) == &third && find_region(at(523)) == &third);
    CHECK(!find_region(at(524)));
    forget_regions();
    CHECK(!find_region(at(256)));
}

CASE(region_lookup_agrees_with_linear_search) {
    unit::Random random(7);
    for (unsigned turn = 0; turn < 20; ++turn) {
        forget_regions();
        Region* regions[64] = {};
        for (unsigned i = 0; i < 40; ++i) {
            unsigned slot = random.below(64);  // may replace an earlier region
            regions[slot] = &allocate(slot * 64, 1 + random.below(64));
        }
        for (unsigned i = 0; i < 2000; ++i) {
            size_t offset = random.below(4096);
            Region* expected = regions[offset / 64];
            if (expected && !expected->contains(at(offset), 1)) expected = nullptr;
            CHECK(find_region(at(offset)) == expected);
        }
    }
    forget_regions();
}

CASE(access_must_lie_in_one_region_as_a_whole) {
    forget_regions();
    Region& region = allocate(256, 10);
    CHECK(region.contains(at(256), 10) && !region.contains(at(256), 11) && region.contains(at(265), 1));
    CHECK(!region.contains(at(265), 2) && !region.contains(at(255), 2) && !region.contains(at(266), 0));
    CHECK(!region.contains(at(256), ~size_t(0)));
}

CASE(nearest_region_is_the_missed_one) {
    forget_regions();
    CHECK(!nearest_region(at(0)));
    Region& first = allocate(1000, 100);
    CHECK(nearest_region(at(0)) == &first && nearest_region(at(2000)) == &first);
    Region& second = allocate(1200, 100);
    CHECK(nearest_region(at(1110)) == &first && nearest_region(at(1190)) == &second);
    // Halfway between both, name the one before: an access past the end is the more common mistake.
    CHECK(nearest_region(at(1150)) == &first);
    CHECK(nearest_region(at(1151)) == &second);
}

CASE(freed_region_is_nearer_than_its_live_neighbor) {
    forget_regions();
    Region& freed = allocate(256, 64);
    allocate(324, 64);
    release_allocation(at(256), nullptr);
    CHECK(nearest_region(at(256)) == &freed && nearest_region(at(319)) == &freed && nearest_region(at(321)) == &freed);
    CHECK(nearest_region(at(323)) != &freed);
    forget_regions();
}

CASE(freed_memory_is_remembered_until_reuse) {
    forget_regions();
    Region& region = allocate(256, 64);
    uint32_t id = region.id;
    track(region);
    CHECK(region.cells && release_allocation(at(256), memory) == &region);
    CHECK(!find_region(at(256)) && nearest_region(at(256)) == &region);
    CHECK(region.freed && region.freed_at == memory && !region.cells);
    CHECK(!release_allocation(at(256), memory) && !release_allocation(at(260), memory));
    track(region);
    CHECK(!region.cells);
    Region& again = allocate(288, 64);  // overlaps the first region, which it replaces
    CHECK(again.id != id && find_region(at(300)) == &again && nearest_region(at(256)) == &again);
}

CASE(granule_size_is_the_element_size) {
    forget_regions();
    const struct {
        const char* dtype;
        unsigned shift;
    } types[] = {{"float32", 2}, {"float64", 2}, {"float16", 1}, {"bfloat16", 1},
                 {"int8", 0},    {"bool", 0},    {"unknown", 2}, {"", 2}};
    for (auto& type : types) CHECK_EQUAL(allocate(0, 64, type.dtype).shift, type.shift);
    for (const char* bits : {"8", "16", "32", "64"})
        for (const char* kind : {"float", "f", "bfloat", "bf", "int", "i", "uint", "u", "complex"}) {
            char dtype[16];
            snprintf(dtype, sizeof dtype, "%s%s", kind, bits);
            bool is_int = strchr("iu", *kind), exists = is_int || *bits != '8';
            if (*kind == 'b') exists = !strcmp(bits, "16");
            if (*kind == 'c') exists = !strcmp(bits, "64");
            CHECK_EQUAL(allocate(0, 64, dtype).element_bytes, exists ? atoi(bits) / 8 : 0);
        }
    CHECK_EQUAL(allocate(0, 64, "bool").element_bytes, 1);
    Region& odd = allocate(0, 63, "float32");
    CHECK_EQUAL(odd.cell_count(), 16);
    forget_regions();
}

CASE(allocation_details_are_stored_in_the_region) {
    forget_regions();
    char text[100];
    memset(text, 'x', sizeof text);
    text[99] = 0;
    const int64_t shape[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
    Region& named = add_allocation({events::MemoryKind::tensor, memory, 64, text, text, 9, shape, memory + 7});
    CHECK(strlen(named.name) == sizeof named.name - 1 && strlen(named.dtype) == sizeof named.dtype - 1);
    CHECK(named.base == at(0) && named.bytes == 64 && named.ndim == 8 && named.allocated_at == memory + 7);
    CHECK(named.space == Space::global && !named.read_only && !named.expected && !named.freed && !named.cells);
    for (int i = 0; i < 8; ++i) CHECK_EQUAL(named.shape[i], i + 1);
    const struct {
        events::MemoryKind given;
        RegionKind kind;
        bool initialized;
    } kinds[] = {{events::MemoryKind::tensor, RegionKind::tensor, false},
                 {events::MemoryKind::device, RegionKind::device_allocation, false},
                 {events::MemoryKind::async, RegionKind::async_allocation, false},
                 {events::MemoryKind::heap, RegionKind::device_heap, false},
                 {events::MemoryKind::managed, RegionKind::managed, true},
                 {events::MemoryKind::pinned_host, RegionKind::pinned_host, true}};
    uint32_t id = named.id;
    for (auto& kind : kinds) {
        Region& region = add_allocation({kind.given, memory + 128, 64, nullptr, nullptr, 0, nullptr, nullptr});
        CHECK(region.kind == kind.kind && region.initialized == kind.initialized && !*region.name && !*region.dtype);
        CHECK(host_shares(region) == kind.initialized && region.id == ++id && region.ndim == 0);
    }
    forget_regions();
    CHECK_EQUAL(allocate(0, 64).id, 1);
}

CASE(reused_memory_replaces_all_regions_that_it_overlaps) {
    for (unsigned turn = 0; turn < 4; ++turn) {
        forget_regions();
        // Eight regions of eight bytes each, at 0, 8, ... 56.
        for (unsigned i : {3u, 0u, 7u, 1u, 5u, 2u, 6u, 4u}) allocate(8 * i, 8);
        const size_t begin = turn < 2 ? 16 : 12, end = turn % 2 ? 44 : 40;
        Region& made = allocate(begin, end - begin);
        for (unsigned i = 0; i < 8; ++i) {
            bool gone = 8 * i < end && 8 * i + 8 > begin;
            Region* found = find_region(at(8 * i + (gone ? 0 : 3)));
            CHECK(gone ? found == (8 * i >= begin ? &made : nullptr) : found && found->base == at(8 * i));
        }
        static unsigned count;
        count = 0;
        static uintptr_t last;
        last = 0;
        each_allocation(
            [](Region& region, void*) {
                CHECK(region.base > last);
                last = region.base;
                ++count;
            },
            nullptr);
        CHECK_EQUAL(count, 8 - ((end + 7) / 8 - begin / 8) + 1);
    }
    forget_regions();
    CHECK(!nearest_region(at(0)));
}

CASE(cells_take_only_the_needed_memory_and_are_freed) {
    constexpr size_t huge = size_t(2) << 20, most = huge / sizeof(ShadowCell);
    for (size_t count : {size_t(0), size_t(1), size_t(170), size_t(512), most - 1, most, most + 1, 2 * most + 1,
                         3 * huge / sizeof(ShadowCell), 9 * most}) {
        size_t before = mapped(), bytes = count * sizeof(ShadowCell) + 1, page = bytes < huge ? 4096 : huge;
        ShadowCell* cells = map_cells(count);
        CHECK_EQUAL(mapped() - before, (bytes + page - 1) / page * page);
        CHECK(cells && reinterpret_cast<uintptr_t>(cells) % page == 0);
        unmap_cells(cells, count);
        CHECK_EQUAL(mapped(), before);
    }
    // If shadow cells cannot be mapped, accesses are not checked, and the report must say so.
    CHECK(!refused_at_first && !cells_were_refused() && !map_cells(size_t(1) << 43) && cells_were_refused());
    forget_regions();
    CHECK(!cells_were_refused());
}

CASE(freed_regions_take_no_memory) {
    size_t space = 0, heap = 0;
    auto use = [](auto end) {
        for (unsigned i = 0; i < 8; ++i) {
            Region& region = allocate(256 * i, 256);
            track(region);
            if (i % 2) refine(region, i % 4 / 2);
        }
        end();
    };
    void (*const ends[])() = {
        [] { forget_regions(); },
        [] { forget_regions(); },
        [] { allocate(0, 4096); },
        [] { allocate(0, 4096); },
        [] {
            for (unsigned i = 0; i < 8; ++i) CHECK(release_allocation(at(256 * i), nullptr));
        },
        [] {
            for (unsigned i = 0; i < 8; ++i) mark_read_only(at(256 * i));
        },
    };
    forget_regions();
    for (unsigned turn = 0; turn < 24; ++turn) {
        use(ends[turn % 6]);
        size_t now = mapped();
        CHECK(turn < 12 || turn % 6 < 2 || now <= space + 4096);
        forget_regions();
        if (turn == 11) space = mapped(), heap = mallinfo2().uordblks;
        CHECK(turn < 12 || (mapped() == space && mallinfo2().uordblks == heap));
    }
}

CASE(split_granules_keep_the_state_of_the_larger_one) {
    forget_regions();
    Region& region = allocate(0, 64);
    track(region);
    for (unsigned i = 0; i < 16; ++i) {
        CHECK(region.cells[i].write == never && region.cells[i].reads == never);
        region.cells[i].write = Epoch(1, i);
        region.cells[i].second.set(static_cast<uint16_t>(i), i);
    }
    refine(region, 2);
    CHECK_EQUAL(region.shift, 2);
    refine(region, 1);
    CHECK(region.shift == 1 && region.cell_count() == 32);
    refine(region, 0);
    CHECK(region.shift == 0 && region.cell_count() == 64);
    refine(region, 1);  // granules never become larger
    CHECK_EQUAL(region.shift, 0);
    for (unsigned byte = 0; byte < 64; ++byte) {
        CHECK(region.cells[byte].write == Epoch(1, byte / 4));
        CHECK(region.cells[byte].second.thread() == byte / 4 && region.cells[byte].second.site() == byte / 4);
    }
}

CASE(shared_granules_are_split_in_place) {
    for (unsigned shift : {0u, 1u}) {
        Region region = {};
        region.space = Space::shared;
        region.bytes = 64;
        region.shift = 2;
        refine(region, shift);
        CHECK(region.shift == shift && !region.cells);
        region.shift = 2;
        ShadowCell* cells = region.cells = map_cells(256);
        for (unsigned i = 0; i < 256; ++i) cells[i].write = Epoch(1, i);
        refine(region, shift);
        CHECK(region.shift == shift && region.cells == cells);
        const unsigned pieces = 4u >> shift;
        for (unsigned i = 0; i < 256; ++i) CHECK(cells[i].write == Epoch(1, i < 16 * pieces ? i / pieces : i));
        unmap_cells(cells, 256);
    }
}

CASE(host_writes_initialize_memory) {
    forget_regions();
    Region& region = allocate(256, 64);
    mark_written(at(256), 0);
    CHECK(!region.initialized && region.window() == global_window);
    mark_written(at(260), 8);  // two granules
    for (unsigned i = 0; i < 16; ++i) CHECK(region.cells[i].write == (i == 1 || i == 2 ? written_before : never));
    mark_written(at(312), 4096);  // marks only the part inside the region
    CHECK(region.cells[13].write == never && region.cells[14].write == written_before &&
          region.cells[15].write == written_before && region.shift == 2);
    mark_written(at(280), 5);  // ends inside a granule, so granules become single bytes
    CHECK_EQUAL(region.shift, 0);
    for (unsigned i = 0; i < 64; ++i) {
        bool written = (i >= 4 && i < 12) || (i >= 24 && i < 29) || i >= 56;
        CHECK(region.cells[i].write == (written ? written_before : never));
    }
    mark_written(at(256), 63);
    CHECK(!region.initialized && region.cells[62].write == written_before);
    mark_written(at(256), 64);
    CHECK(region.initialized && region.window() == initialized_window);
    CHECK(allocate(512, 4, "", events::MemoryKind::managed).initialized);
    CHECK(!allocate(600, 4, "", events::MemoryKind::device).initialized);
}

CASE(read_only_memory_has_no_cells) {
    forget_regions();
    Region& region = allocate(256, 64);
    track(region);
    mark_read_only(at(260));  // not the start of a region
    CHECK(!region.read_only && region.cells);
    mark_read_only(at(256));
    CHECK(region.read_only && !region.cells);
    mark_expected(at(260));
    CHECK(!region.expected);
    mark_expected(at(256));
    CHECK(region.expected);
}

CASE(device_variable_keeps_its_id_whenever_it_is_first_accessed) {
    RegisterGlobal one("one", memory + 100, 8, GlobalKind::device), two("two", memory + 200, 8, GlobalKind::constant);
    uint32_t id = 0;
    for (bool later : {false, true}) {
        forget_regions();
        if (later) CHECK(find_region(at(207)) && allocate(256, 64).id < 1u << 30);
        Region* found = find_region(at(107));
        CHECK(found && found == find_region(at(100)) && !find_region(at(108)));
        CHECK(found->id >> 30 == 1 && (!later || found->id == id));
        CHECK(found->bytes == 8 && found->initialized && !found->read_only && !strcmp(found->name, "one"));
        CHECK(find_region(at(200))->read_only && find_region(at(200))->id != found->id);
        id = found->id;
    }
    forget_regions();
}

CASE(variable_of_a_reloaded_library_is_a_new_region) {
    forget_regions();
    auto count = [] {
        static unsigned variables;
        variables = 0;
        each_variable([](Region& region, void*) { variables += region.kind == RegionKind::device_variable; }, nullptr);
        return variables;
    };
    RegisterGlobal constant("constant", memory + 300, 8, GlobalKind::constant);
    CHECK(find_region(at(300))->kind == RegionKind::constant_variable &&
          find_region(at(300))->space == Space::constant);
    CHECK(find_region(at(300))->shift == 2 && find_region(at(300))->base == at(300));
    CHECK_EQUAL(count(), 0);
    {
        RegisterGlobal one("one", memory + 100, 8, GlobalKind::device);
        Region* found = find_region(at(104));
        CHECK(found->kind == RegionKind::device_variable && found->space == Space::global && count() == 1);
        track(*found);
        found->cells[0].write = Epoch(5, 5);
        age_regions();
        CHECK(found->cells[0].write == written_before && found->cells[1].write == never);
        CHECK(find_region(at(300)) && find_region(at(100)) == found);
    }
    CHECK(nearest_region(at(100)) == nullptr);
    for (size_t bytes : {size_t(8), size_t(16)}) {
        RegisterGlobal other("other", memory + 100, bytes, GlobalKind::device);
        CHECK(find_region(at(300)));  // replace the cached result of the last lookup
        Region* found = find_region(at(100));
        CHECK(found && !strcmp(found->name, "other") && found->bytes == bytes && !found->cells && count() == 1);
    }
    forget_regions();
    CHECK_EQUAL(count(), 0);
}

CASE(written_memory_stays_written_when_serials_restart) {
    forget_regions();
    Region& region = allocate(256, 16);
    track(region);
    region.cells[1].write = Epoch(5, 5);
    region.cells[3].reads = Epoch(5, 5);
    region.allocated_serial = 4;
    age_regions();
    CHECK_EQUAL(region.allocated_serial, 0);
    CHECK(region.cells[0].write == never && region.cells[1].write == written_before);
    CHECK(region.cells[2].write == never && region.cells[3].write == never);
    for (unsigned i = 0; i < 4; ++i) CHECK(region.cells[i].reads == never);
    forget_regions();
}

CASE(all_cells_of_a_large_region_are_usable) {
    for (size_t count : {size_t(1), (size_t(2) << 20) / sizeof(ShadowCell), size_t(200000)}) {
        ShadowCell* cells = map_cells(count);
        for (size_t i = 0; i < count; ++i) {
            CHECK(cells[i].write == never);
            cells[i].write = written_before;
        }
        unmap_cells(cells, count);
    }
}
