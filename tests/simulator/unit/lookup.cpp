// Tests of the lookup of an access's memory, and of findings about accesses outside of all memory.
#include <link.h>

#include "checks/core/access.h"
#include "runtime/arena.h"
#include "submission_sandbox/sandbox.h"
#include "as_thread.h"
#include "found.h"
#include "grid.h"
#include "sim/globals.h"
#include "unit.h"

using namespace sim::checks;
using sim::GlobalKind;
using sim::RegisterGlobal;
using unit::Grid;

namespace {

const char code[8] = {};
const float table[4] = {1, 2, 3, 4};
alignas(4096) char memory[32768];

uintptr_t number(const void* data) { return reinterpret_cast<uintptr_t>(data); }

// Makes an access. Returns CUDA's error if the access ends the launch, otherwise 0.
int reach(Grid& grid, const void* data, Access access = Access::read, unsigned size_log2 = 2, unsigned place = 0) {
    ThreadState& thread = grid.thread(0, 0);
    return unit::as_thread(thread, [&] { prepare_and_log(thread, number(data), access, size_log2, code + place); });
}

// Allocates a region of `bytes` bytes in device memory, and sets `data` to its address.
Region& allocate(char*& data, size_t offset, size_t bytes, const char* dtype = "float32") {
    static char* block = sim::arena::allocate(4096, 0);
    const int64_t shape[] = {static_cast<int64_t>(bytes)};
    forget_regions();
    data = block + offset;
    return add_allocation({sim::events::MemoryKind::tensor, data, bytes, "x", dtype, 1, shape, nullptr});
}

bool found(const char* kind) { return finding_count() && !strcmp(name_of(finding(finding_count() - 1).kind), kind); }
bool found(const char* kind, const void* data, Access access, unsigned bytes) {
    const Finding& one = finding(finding_count() - 1);
    return found(kind) && check_of(one.kind) == Check::memcheck && unit::number_in(one) == number(data) &&
           one.bytes == bytes && one.side.access == static_cast<uint8_t>(access) && one.side.address == code;
}

}  // namespace

CASE(library_constants_are_readable_and_other_host_memory_is_not) {
    Grid grid(1, 32);
    CHECK_EQUAL(reach(grid, table), 0);
    Segment& tables = grid.thread(0, 0).worker->tables;
    CHECK(number(table) - tables.base < tables.bytes && !tables.writable);
    CHECK_EQUAL(reach(grid, table + 3), 0);
    CHECK_EQUAL(finding_count(), 0);
    CHECK_EQUAL(reach(grid, table, Access::write), 700);
    CHECK(found("illegal_address"));
    char* heap = static_cast<char*>(malloc(64));
    CHECK_EQUAL(reach(grid, heap), 700);
    tables = {number(heap), 32, false, false};
    CHECK_EQUAL(reach(grid, heap + 28), 0);
    CHECK_EQUAL(reach(grid, heap + 32), 700);
    free(heap);
}

CASE(constants_end_where_their_library_ends) {
    static uintptr_t ends[8];
    static int errors[8];  // of a read of the last byte: only read-only segments hold constants
    static unsigned count;
    count = 0;
    auto look = [](dl_phdr_info* info, size_t, void*) {
        for (unsigned i = 0; i < info->dlpi_phnum && count < 8; ++i)
            if (const ElfW(Phdr) & one = info->dlpi_phdr[i]; one.p_type == PT_LOAD) {
                errors[count] = one.p_flags & PF_W ? 700 : 0;
                ends[count++] = info->dlpi_addr + one.p_vaddr + one.p_memsz;
            }
        return 1;  // stop after the first entry, which is this program
    };
    dl_iterate_phdr(look, nullptr);
    CHECK(count > 1);
    for (unsigned i = 0; i < count; ++i) {
        Grid grid(1, 32);
        CHECK_EQUAL(reach(grid, reinterpret_cast<void*>(ends[i]), Access::read, 0), 700);
        CHECK_EQUAL(reach(grid, reinterpret_cast<void*>(ends[i] - 1), Access::read, 0), errors[i]);
    }
}

CASE(tables_of_a_confined_submission_are_small) {
    alignas(32) static const char large[8192] = {1};
    for (bool confined : {false, true}) {
        Grid grid(1, 32);
        sim::sandbox::confined = confined;
        for (unsigned byte = 0; byte < 4096; byte += 4) CHECK_EQUAL(reach(grid, large + byte), 0);
        CHECK_EQUAL(reach(grid, large), 0);
        CHECK_EQUAL(finding_count(), 0);
        CHECK_EQUAL(reach(grid, large + 8188), 0);
        sim::sandbox::confined = false;
        CHECK_EQUAL(finding_count() != 0, confined);
        CHECK(!confined || !strcmp(name_of(finding(0).kind), "constants_too_large"));
    }
}

CASE(access_beside_a_device_variable_names_it) {
    forget_regions();
    RegisterGlobal small("small", memory + 4096, 64, GlobalKind::device);
    RegisterGlobal near("near", memory + 4239, 16, GlobalKind::device);
    RegisterGlobal large("large", memory + 16384, 4096, GlobalKind::device);
    const struct {
        long offset;
        const char* name;  // the nearest memory; null if none is near
    } accesses[] = {
        {16384 - 4100, nullptr}, {16384 - 4092, "large"}, {16384 - 4, "large"},
        {20480, "large"},        {20480 + 4092, "large"}, {20480 + 4096, nullptr},
        {4160, "small"},         {4200, "small"},  // 4200 is equally far from both, so the first one is named
        {4204, "near"}};
    for (auto& one : accesses) {
        Grid grid(1, 32);
        CHECK_EQUAL(reach(grid, memory + one.offset), one.name ? 0 : 700);
        CHECK_EQUAL(finding_count(), 1);
        if (!one.name) continue;
        CHECK(found("out_of_bounds") && !strcmp(finding(0).place.name, one.name));
        CHECK_EQUAL(reach(grid, memory + one.offset, Access::write), 700);
    }
    forget_regions();
}

CASE(null_pointer_access_covers_the_first_64_KB) {
    Grid grid(1, 32);
    CHECK_EQUAL(reach(grid, reinterpret_cast<void*>(65535), Access::read, 0), 700);
    CHECK(found("null_pointer"));
    CHECK_EQUAL(reach(grid, reinterpret_cast<void*>(65536), Access::read, 0), 700);
    CHECK(found("illegal_address"));
}

CASE(log_offsets_count_from_the_first_sector_of_the_memory) {
    forget_regions();
    const int64_t shape[] = {16};
    for (size_t offset : {size_t(40), size_t(1024)})
        add_allocation({sim::events::MemoryKind::tensor, memory + offset, 64, "x", "float32", 1, shape, nullptr});
    Grid grid(1, 32);
    ThreadState& thread = grid.thread(0, 0);
    for (size_t offset : {size_t(44), size_t(1028), size_t(40)}) {
        AccessSite* site = prepare_and_log(thread, number(memory + offset), Access::write, 2, code);
        CHECK(site && site->next[-1] == (offset < 1024 ? offset - 32 : offset - 1024) / 4);
    }
    CHECK_EQUAL(finding_count(), 0);
}

CASE(access_beside_a_tensor_is_out_of_bounds) {
    for (Access access : {Access::read, Access::write, Access::atomic}) {
        char* data = nullptr;
        Region& region = allocate(data, 256, 64);
        for (long offset : {-8l, 64l, 1000l}) {
            Grid grid(1, 32);
            CHECK_EQUAL(reach(grid, data + offset, access, 3), 0);
            CHECK(found("out_of_bounds", data + offset, access, 8) && finding_count() == 1);
            CHECK(finding(0).place.known && finding(0).place.offset == offset && finding(0).place.id == region.id);
            CHECK(!region.cells);
        }
    }
    char* data = nullptr;
    Region& region = allocate(data, 256, 64);
    release_allocation(region.base, nullptr);
    for (long offset : {0l, 63l, 64l}) {
        Grid grid(1, 32);
        CHECK_EQUAL(reach(grid, data + offset, Access::write, 0), 0);
        CHECK(found(offset < 64 ? "use_after_free" : "out_of_bounds", data + offset, Access::write, 1));
        CHECK(!region.cells);
    }
    forget_regions();
}

CASE(write_partly_out_of_bounds_writes_the_part_inside) {
    for (Access access : {Access::write, Access::read, Access::atomic})
        for (bool end : {false, true})
            for (bool read_only : {false, true}) {
                char* data = nullptr;
                Region& region = allocate(data, 260, 56);  // neither end is a multiple of eight bytes
                region.read_only = read_only;
                Grid grid(1, 32);
                CHECK_EQUAL(reach(grid, end ? data + 52 : data - 4, access, 3), 0);
                CHECK(found("out_of_bounds") && finding_count() == 1);
                const bool happens = access == Access::write && !read_only;
                CHECK_EQUAL(region.cells != nullptr, happens);
                for (unsigned i = 0; happens && i < 14; ++i)
                    CHECK(region.cells[i].write == (i == (end ? 13 : 0) ? grid.thread(0, 0).epoch : never));
            }
    // Accesses across the ends of shared arrays.
    for (Access access : {Access::write, Access::read}) {
        Grid grid(1, 32);
        sim::events::shared_array(code, 36, 56, "array");
        BlockState& block = *grid.thread(0, 0).block;
        char* shared = grid.block(0).shared;
        CHECK_EQUAL(reach(grid, shared + 88, access, 3), 0);
        CHECK(found("out_of_bounds", shared + 88, access, 8) && !strcmp(finding(0).place.name, "array"));
        Region& region = *find_shared(block, number(shared) + 36);
        for (unsigned i = 0; i < 14; ++i)
            CHECK(region.cells[i].write == (i == 13 && access == Access::write ? grid.thread(0, 0).epoch : never));
        for (unsigned offset : {24u, 96u}) CHECK_EQUAL(reach(grid, shared + offset, access, 3), 0);
        CHECK(finding(0).count == 3 && region.cells[14].write == never && region.cells[0].write == never);
        region.cells[13].write = never;
    }
    forget_regions();
}

CASE(misaligned_access_ends_the_launch) {
    char* data = nullptr;
    Region& region = allocate(data, 256, 64);
    for (unsigned size_log2 : {0u, 1u, 2u, 3u, 4u})
        for (unsigned offset = 0; offset < 17; ++offset) {
            Grid grid(1, 32);
            bool aligned = offset % (1u << size_log2) == 0;
            CHECK_EQUAL(reach(grid, data + offset, Access::read, size_log2), aligned ? 0 : 716);
            CHECK(finding_count() == !aligned);
            if (aligned) continue;
            CHECK(found("misaligned", data + offset, Access::read, 1u << size_log2));
            CHECK(finding(0).place.id == region.id && finding(0).place.offset == offset);
        }
    forget_regions();
}

CASE(write_to_read_only_memory_is_reported) {
    sim::RegisterGlobal constant("constant", memory + 24576, 64, GlobalKind::constant);
    char* data = nullptr;
    Region& region = allocate(data, 256, 64);
    mark_read_only(region.base);
    for (Access access : {Access::read, Access::write, Access::atomic}) {
        Grid grid(1, 32);
        CHECK_EQUAL(reach(grid, data + 4, access), 0);
        CHECK_EQUAL(finding_count(), access != Access::read);
        CHECK(!finding_count() || found("write_to_const", data + 4, access, 4));
        CHECK(!region.cells);
        forget_findings();
        CHECK_EQUAL(reach(grid, memory + 24580, access, 2), 0);
        CHECK(!finding_count() == (access == Access::read));
        CHECK(!finding_count() || found("write_to_constant", memory + 24580, access, 4));
    }
    forget_regions();
}

CASE(grid_constant_parameter_is_readable_at_its_address) {
    Grid grid(1, 32);
    char* heap = static_cast<char*>(malloc(256));
    grid.launch().parameters = heap + 64;
    grid.launch().parameter_bytes = 64;
    for (unsigned offset : {64u, 124u}) CHECK_EQUAL(reach(grid, heap + offset), 0);
    CHECK_EQUAL(finding_count(), 0);
    CHECK_EQUAL(reach(grid, heap + 128), 700);
    CHECK_EQUAL(reach(grid, heap + 60), 700);
    CHECK_EQUAL(reach(grid, heap + 64, Access::write), 700);
    CHECK(finding_count() == 2 && found("illegal_address") && unit::number_in(finding(1)) == number(heap + 64));
    CHECK(finding(1).bytes == 4 && finding(1).side.access == static_cast<uint8_t>(Access::write));
    free(heap);
}

CASE(access_around_device_constants_is_reported) {
    alignas(16) static const char zone[sim::zone_bytes] = {1};
    sim::RegisterZone registered(zone);
    Grid grid(1, 32);
    CHECK_EQUAL(reach(grid, zone + 4), 700);
    CHECK(found("illegal_address"));
    CHECK_EQUAL(reach(grid, table), 0);
    CHECK_EQUAL(reach(grid, zone + 4), 700);  // refused even when the lookup of `table` is cached
    CHECK_EQUAL(reach(grid, table), 0);
}

CASE(host_address_of_a_variable_is_invalid_in_a_kernel) {
    forget_regions();
    alignas(16) static char variable[64];
    sim::RegisterGlobal registered("variable", variable, 64, GlobalKind::device, true);
    char* copy = static_cast<char*>(sim::host_name_of(variable));
    for (Access access : {Access::read, Access::write}) {
        Grid grid(1, 32);
        CHECK_EQUAL(reach(grid, copy + 8, access), 700);
        CHECK(found("host_name") && finding(0).place.offset == 8 && !strcmp(finding(0).place.name, "variable"));
        CHECK_EQUAL(unit::number_in(finding(0)), number(variable + 8));
    }
    forget_regions();
}

CASE(site_stores_the_region_for_the_next_access) {
    char* data = nullptr;
    Region& region = allocate(data, 256, 64);
    mark_written(region.base, 64);
    for (bool concurrent : {false, true}) {
        unmap_cells(region.cells, region.cell_count());
        region.cells = nullptr;
        Grid grid(1, 32);
        the_launch.concurrent = concurrent;
        ThreadState& thread = grid.thread(0, 0);
        AccessSite* site = prepare_and_log(thread, number(data + 60), Access::read, 2, code);
        CHECK(site && site->region == &region && site->base == region.base && site->cells == region.cells &&
              region.cells);
        CHECK(site->limit == 61 && site->shift == 2 && site->window == initialized_window &&
              site->space == Space::global);
        CHECK(site->access == Access::read && site->size_log2 == 2 && site->guarded == concurrent);
        CHECK(site->owner == &thread && site->block == thread.block);
        CHECK_EQUAL(site->origin, number(sim::arena_range().base));
        // An access of another kind or size from the same code address gets another site.
        AccessSite* write = prepare_and_log(thread, number(data + 60), Access::write, 2, code);
        CHECK(write && write != site && write->access == Access::write && write->limit == 61);
        AccessSite* wide = prepare_and_log(thread, number(data + 56), Access::write, 3, code);
        CHECK(wide && wide != write && wide->size_log2 == 3 && wide->limit == 57 && region.shift == 2);
        CHECK(prepare_and_log(thread, number(data), Access::read, 2, code) == site);
        AccessSite* shared = prepare_and_log(thread, number(grid.shared(0)), Access::read, 2, code + 1);
        CHECK(shared && shared->space == Space::shared && !shared->guarded && shared->window == shared_window);
        CHECK_EQUAL(shared->origin, thread.block->shared->base);
        the_launch.concurrent = false;
    }
    forget_regions();
}

CASE(each_access_past_the_end_is_reported_at_a_site_with_valid_accesses) {
    for (size_t bytes : {size_t(1), size_t(16)})
        for (unsigned size_log2 : {0u, 2u, 4u}) {
            if (bytes < size_t(1) << size_log2) continue;
            char* data = nullptr;
            allocate(data, 256, bytes, "int8");
            Grid grid(1, 32);
            CHECK_EQUAL(reach(grid, data + bytes - (size_t(1) << size_log2), Access::write, size_log2), 0);
            CHECK_EQUAL(finding_count(), 0);
            CHECK_EQUAL(reach(grid, data + bytes, Access::write, size_log2), 0);
            CHECK(found("out_of_bounds", data + bytes, Access::write, 1u << size_log2));
        }
    forget_regions();
}

CASE(access_smaller_than_a_granule_splits_all_granules) {
    char* data = nullptr;
    Region& region = allocate(data, 256, 64);
    Grid grid(1, 32);
    ThreadState& thread = grid.thread(0, 0);
    AccessSite* words = prepare_and_log(thread, region.base, Access::write, 2, code);
    AccessSite* others = prepare_and_log(thread, number(grid.shared(0)), Access::write, 2, code + 1);
    CHECK(words && words->limit == 61 && others && others->limit && region.shift == 2);
    prepare_and_log(thread, region.base, Access::write, 2, code + 3);
    prepare_and_log(thread, region.base, Access::write, 3, code + 4);
    CHECK_EQUAL(words->limit, 61);  // accesses as large as a cell do not change the limit
    AccessSite* bytes = prepare_and_log(thread, region.base + 1, Access::write, 0, code + 2);
    CHECK(bytes && bytes->shift == 0 && region.shift == 0 && region.cell_count() == 64 && bytes->cells == region.cells);
    CHECK(words->limit == 0 && others->limit != 0);  // limit 0: the next access looks up its memory again
    CHECK(prepare_and_log(thread, region.base, Access::write, 2, code) == words && words->shift == 0);
    CHECK(words->cells == region.cells);
    forget_regions();
}

CASE(splitting_device_granules_needs_one_worker) {
    char* data = nullptr;
    allocate(data, 256, 64);
    for (bool shared : {true, false}) {
        Grid grid(1, 32);
        ThreadState& thread = grid.thread(0, 0);
        sim::Grid launch = {};
        launch.workers = 2;
        uintptr_t address = number(shared ? grid.shared(0) : data) + 1;
        unit::as_thread(thread, [&] { prepare_and_log(thread, address, Access::write, 0, code); }, launch);
        CHECK_EQUAL(launch.workers, shared ? 2 : 1);
        CHECK(shared || !strcmp(launch.one_worker_reason, "its threads access pieces of elements"));
        CHECK_EQUAL(finding_count(), 0);
    }
    forget_regions();
}

CASE(site_that_moves_to_other_memory_counts_its_log_first) {
    char* data = nullptr;
    allocate(data, 256, 64);
    const int64_t shape[] = {16};
    add_allocation({sim::events::MemoryKind::tensor, memory + 2048, 64, "y", "float32", 1, shape, nullptr});
    Grid grid(1, 32);
    ThreadState& thread = grid.thread(0, 0);
    AccessSite* site = prepare_and_log(thread, number(data), Access::write, 2, code);
    prepare_and_log(thread, number(data + 4), Access::write, 2, code);
    CHECK(site && site->counters.requests == 0);
    CHECK(prepare_and_log(thread, number(memory + 2048), Access::write, 2, code) == site);
    CHECK(site->counters.requests == 2 && site->origin == number(memory + 2048));
    forget_regions();
}

CASE(shared_memory_of_another_block_is_a_distributed_access) {
    Grid grid(2, 32, 2);
    ThreadState& thread = grid.thread(0, 0);
    for (unsigned turn = 0; turn < 2; ++turn)
        for (unsigned b : {0u, 1u}) {
            AccessSite* site = prepare_and_log(thread, number(grid.shared(b)), Access::read, 2, code);
            CHECK(site && site->space == (b ? Space::distributed : Space::shared) &&
                  site->origin == thread.block->shared->base);
            CHECK(site->region == find_shared(*state_of(grid.block(b)), number(grid.shared(b))));
        }
    AccessSite* site = prepare_and_log(grid.thread(1, 0), number(grid.shared(1)), Access::read, 2, code);
    CHECK(site && site->space == Space::shared && site->block == state_of(grid.block(1)));
    CHECK_EQUAL(site->origin, grid.thread(1, 0).block->shared->base);
    // The same site and address are now accessed by a thread of another block, to which the memory does not belong.
    site = prepare_and_log(thread, number(grid.shared(1)), Access::read, 2, code);
    CHECK(site && site->space == Space::distributed && site->block == thread.block);
    CHECK_EQUAL(finding_count(), 0);
}

CASE(address_behind_device_memory_has_no_nearest_region) {
    char* data = nullptr;
    allocate(data, 256, 64);
    sim::ArenaRange arena = sim::arena_range();
    Grid grid(1, 32);
    CHECK_EQUAL(reach(grid, arena.base + arena.bytes - 4), 0);
    CHECK(found("out_of_bounds"));
    CHECK_EQUAL(reach(grid, arena.base + arena.bytes), 700);
    CHECK(found("illegal_address"));
    forget_regions();
}

CASE(access_of_any_kind_settles_pending_writes) {
    unit::Floats x;
    Grid grid(1, 64);
    x.write(grid.thread(0, 0), 2);
    ThreadState& thread = grid.thread(0, 33);
    on_access<2, true>(thread, number(x.at(2)), code);
    *x.at(2) += 1;
    CHECK(thread.pending && finding_count() == 0);
    prepare_and_log(thread, number(x.at(9)), Access::atomic, 2, code + 1);
    CHECK(!thread.pending && finding_count() == 1);
}

CASE(confined_kernel_writes_only_its_own_memory) {
    char* data = nullptr;
    allocate(data, 256, 64);
    sim::ArenaRange arena = sim::arena_range();
    char* end = arena.base + arena.bytes;
    for (bool confined : {false, true})
        for (Access access : {Access::read, Access::write, Access::atomic}) {
            const int refused = confined && access != Access::read ? 700 : 0;
            Grid grid(1, 32);
            sim::sandbox::confined = confined;
            CHECK_EQUAL(reach(grid, end - 8, access, 3), 0);
            CHECK(found("out_of_bounds"));
            CHECK_EQUAL(reach(grid, end - 4, access, 3), refused);  // the last bytes are outside of device memory
            CHECK(found(refused ? "illegal_address" : "out_of_bounds"));
            forget_findings();
            // On a thread's stack, an access below the frame of the running function is invalid.
            ThreadState& thread = grid.thread(0, 0);
            int error = unit::as_thread(
                thread, [&] { prepare_and_log(thread, number(thread.thread->fiber->low) + 4096, access, 2, code); });
            sim::sandbox::confined = false;
            CHECK_EQUAL(error, refused);
            CHECK(refused ? found("not_its_stack") : finding_count() == 0);
        }
    forget_regions();
}
