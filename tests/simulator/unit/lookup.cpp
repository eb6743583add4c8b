// Which memory an access is to, and what is said of one that is to none.
#include "checks/access.h"
#include "as_thread.h"
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

// CUDA's error, where the access ends the launch.
int reach(Grid& grid, const void* data, Access access = Access::read, unsigned size_log2 = 2) {
    ThreadState& thread = grid.thread(0, 0);
    return unit::as_thread(thread, [&] { prepare_and_log(thread, number(data), access, size_log2, code); });
}

bool found(const char* kind) { return finding_count() && !strcmp(finding(finding_count() - 1).kind, kind); }

}  // namespace

CASE(constants_of_a_library_can_be_read_and_nothing_else_of_the_host) {
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
    tables = {number(heap), 32, false};
    CHECK_EQUAL(reach(grid, heap + 28), 0);
    CHECK_EQUAL(reach(grid, heap + 32), 700);
    free(heap);
}

CASE(an_access_beside_a_device_variable_is_said_to_miss_it) {
    forget_regions();
    RegisterGlobal small("small", memory + 4096, 64, GlobalKind::device);
    RegisterGlobal near("near", memory + 4239, 16, GlobalKind::device);
    RegisterGlobal large("large", memory + 16384, 4096, GlobalKind::device);
    const struct {
        long offset;
        const char* name;  // null: of none
    } accesses[] = {{16384 - 4100, nullptr}, {16384 - 4092, "large"}, {16384 - 4, "large"},
                    {20480, "large"},        {20480 + 4092, "large"}, {20480 + 4096, nullptr},
                    {4160, "small"},         {4200, "small"},  // as near to both: the first
                    {4204, "near"}};
    for (auto& one : accesses) {
        Grid grid(1, 32);
        CHECK_EQUAL(reach(grid, memory + one.offset), 0);
        CHECK_EQUAL(finding_count(), one.name != nullptr);
        if (!one.name || !finding_count()) continue;
        CHECK(found("out_of_bounds") && !strcmp(finding(0).place.name, one.name));
        CHECK_EQUAL(reach(grid, memory + one.offset, Access::write), 700);
    }
    forget_regions();
}

CASE(a_null_pointer_reaches_as_far_as_64_KB) {
    Grid grid(1, 32);
    CHECK_EQUAL(reach(grid, reinterpret_cast<void*>(65535), Access::read, 0), 700);
    CHECK(found("null_pointer"));
    CHECK_EQUAL(reach(grid, reinterpret_cast<void*>(65536), Access::read, 0), 700);
    CHECK(found("illegal_address"));
}

CASE(what_is_logged_counts_from_the_sector_in_which_the_memory_begins) {
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
