// Tests of indices out of bounds that -fsanitize=bounds reports. The next access turns each report into a finding.
#include "found.h"
#include "grid.h"
#include "unit.h"

using namespace sim::checks;
using unit::Grid;

namespace {

// The compiler's layout of the arguments of __ubsan_handle_out_of_bounds.
struct Type {
    uint16_t kind, info;
    char name[500];
};
struct Data {
    const char* file;
    uint32_t line, column;
    Type *array, *index;
};
enum Sign : uint16_t { no_sign, with_sign };
uint16_t info(unsigned bits_log2, Sign sign) { return static_cast<uint16_t>(bits_log2 << 1 | sign); }

}  // namespace

extern "C" void __wrap___ubsan_handle_out_of_bounds(void* data, uintptr_t index);
extern "C" void __wrap___ubsan_handle_type_mismatch_v1(void* data, uintptr_t address);

namespace {

// Reports an invalid array index in one thread, as the compiler's check does, then makes an access to shared memory.
// Returns whether this is a finding.
bool reports(Grid& grid, const char* array, uint16_t index_info, uintptr_t index) {
    Type array_type = {}, index_type = {};
    strcpy(array_type.name, array);
    index_type.info = index_info;
    Data data = {"", 1, 1, &array_type, &index_type};
    ThreadState& thread = grid.thread(0, 3);
    sim::current_thread = thread.thread;
    __wrap___ubsan_handle_out_of_bounds(&data, index);
    sim::current_thread = nullptr;
    CHECK(finding_count() == 0);
    if (!thread.pending) return false;
    settle(thread, reinterpret_cast<uintptr_t>(grid.shared(0)),
           static_cast<const char*>(thread.extras->index.code_address) + 1);
    CHECK(!thread.pending);
    return finding_count() == 1;
}
void take(Grid& grid, const char* array, uint16_t index_info, uintptr_t index) {
    CHECK(reports(grid, array, index_info, index));
}

}  // namespace

CASE(out_of_bounds_index_is_shown_in_its_type) {
    const long long wide[2] = {-7, -1};
    const struct {
        uint16_t info;
        uintptr_t value;
        long long number;
    } indices[] = {
        {info(5, with_sign), 0xffffffff, -1},
        {info(5, with_sign), 9, 9},
        {info(5, no_sign), 0xffffffff, 0xffffffff},
        {info(4, with_sign), 0xfffe, -2},
        {info(6, with_sign), ~uintptr_t(0), -1},
        {info(6, no_sign), 1ull << 40, 1ll << 40},
        {info(7, with_sign), reinterpret_cast<uintptr_t>(wide), -7},
    };
    for (auto& one : indices) {
        Grid grid(1, 32);
        take(grid, "'float[8]'", one.info, one.value);
        CHECK_EQUAL(unit::number_in(finding(0)), static_cast<uint64_t>(one.number));
    }
}

CASE(array_type_is_named_without_quotes) {
    char name[500] = {};
    for (const char* array : {"'float[8]'", "float[8]"}) {
        Grid grid(1, 32);
        take(grid, array, info(5, with_sign), 8);
        CHECK(unit::says(finding(0), "float[8]"));
    }
    memset(name, 'x', sizeof name - 1);
    Grid grid(1, 32);
    take(grid, name, info(5, with_sign), 8);
    CHECK_EQUAL(strlen(unit::facts(finding(0)).text), 255);
}

CASE(out_of_bounds_index_is_reported_once_with_its_place) {
    Grid grid(1, 32);
    take(grid, "'float[8]'", info(5, with_sign), 8);
    const ThreadState& thread = grid.thread(0, 3);
    CHECK_EQUAL(finding(0).side.thread, 3);
    CHECK(finding(0).side.address == thread.extras->index.code_address);
    settle(grid.thread(0, 3), 0, nullptr);
    CHECK_EQUAL(finding_count(), 1);
}

CASE(index_of_an_array_of_one_element_is_not_checked) {
    for (const char* array : {"'float[1]'", "'float [0]'", "'float [1][4]'"}) {
        Grid grid(1, 32);
        CHECK(!reports(grid, array, info(5, with_sign), 8));
    }
    Grid grid(1, 32);
    CHECK(reports(grid, "'float [4][1]'", info(5, with_sign), 8));
}

CASE(access_past_an_object_with_bounds_is_checked_by_its_address) {
    Grid grid(1, 32);
    sim::current_thread = grid.thread(0, 3).thread;
    __wrap___ubsan_handle_type_mismatch_v1(nullptr, reinterpret_cast<uintptr_t>(grid.shared(0)));
    sim::current_thread = nullptr;
    CHECK_EQUAL(finding_count(), 0);
}

CASE(out_of_bounds_index_outside_checked_kernels_is_ignored) {
    Data data = {};
    __wrap___ubsan_handle_out_of_bounds(&data, 8);
    __wrap___ubsan_handle_type_mismatch_v1(&data, 8);
    sim::Thread thread = {};  // as in a launch without checks
    sim::current_thread = &thread;
    __wrap___ubsan_handle_out_of_bounds(&data, 8);
    sim::current_thread = nullptr;
}
