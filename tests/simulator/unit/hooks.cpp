// Tests of the hooks that compilers call before each access: host code may access only some memory, and compilers split
// some accesses.
#include "checks/core/hooks.h"

#include "checks/counting/counting.h"
#include "checks/synchronization/order.h"
#include "checks/synchronization/streams.h"
#include "runtime/host_threads.h"
#include "submission_sandbox/sandbox.h"
#include "runtime/streams.h"
#include "sim/copies.h"
#include "sim/globals.h"
#include "as_thread.h"
#include "grid.h"
#include "unit.h"

using namespace sim::checks;
using sim::events::MemoryKind;
using unit::Floats;
using unit::Grid;

#define OF_EACH_SIZE(DO) DO(1) DO(2) DO(4) DO(8) DO(16)
#define DECLARE(SIZE)                                                                           \
    void __wrap___tsan_read##SIZE(void*), __wrap___tsan_write##SIZE(void*);                     \
    void __wrap___tsan_unaligned_read##SIZE(void*), __wrap___tsan_unaligned_write##SIZE(void*); \
    void __wrap___tsan_volatile_read##SIZE(void*), __wrap___tsan_volatile_write##SIZE(void*);   \
    void __wrap___tsan_unaligned_volatile_read##SIZE(void*), __wrap___tsan_unaligned_volatile_write##SIZE(void*);
extern "C" {
OF_EACH_SIZE(DECLARE)
void __wrap___tsan_read_range(void*, size_t);
void __wrap___tsan_write_range(void*, size_t);
void* __wrap___tsan_memcpy(void*, const void*, size_t);
void* __wrap___tsan_memmove(void*, const void*, size_t);
void* __wrap___tsan_memset(void*, int, size_t);
}

namespace {

using Hook = void (*)(void*);
struct Hooks {
    unsigned size;
    Hook plain[2], unaligned[2], of_volatile[2], unaligned_volatile[2];  // [0] for reads, [1] for writes
};
#define HOOKS_OF(SIZE)                                                          \
    {SIZE,                                                                      \
     {__wrap___tsan_read##SIZE, __wrap___tsan_write##SIZE},                     \
     {__wrap___tsan_unaligned_read##SIZE, __wrap___tsan_unaligned_write##SIZE}, \
     {__wrap___tsan_volatile_read##SIZE, __wrap___tsan_volatile_write##SIZE},   \
     {__wrap___tsan_unaligned_volatile_read##SIZE, __wrap___tsan_unaligned_volatile_write##SIZE}},
const Hooks all[] = {OF_EACH_SIZE(HOOKS_OF)};

const char code[64] = {};
alignas(256) char memory[512];

uintptr_t number(const void* data) { return reinterpret_cast<uintptr_t>(data); }

// Calls a hook so that the hook's return address is in this function.
template <typename F>
__attribute__((noinline)) void call(F hook) {
    hook();
    asm volatile("");
}

bool found(const char* kind, Access access, unsigned bytes) {
    if (finding_count() != 1) return false;
    const Finding& one = finding(0);
    return !strcmp(name_of(one.kind), kind) && static_cast<Access>(one.side.access) == access && one.bytes == bytes &&
           one.count == 1 && one.kernel == ~0u && one.side.address;
}

// Turns host memory into device memory at a fixed address.
Region& begin(MemoryKind kind) {
    sim::events::reset();
    sim::events::allocation({kind, memory + 64, 64, nullptr, nullptr, 0, nullptr, nullptr});
    host_view.arena_base = number(memory);
    host_view.arena_bytes = 256;
    return *find_region(number(memory + 64));
}

// Returns the number of accesses of a kind and size, summed over all code addresses.
uint64_t counted(Grid& grid, Access access, unsigned size) {
    grid.syncthreads(0);
    uint64_t sum = 0;
    grid.thread(0, 0).worker->sites.each([&](AccessSite& site) {
        if (site.access == access && 1u << site.size_log2 == size) sum += site.counters.accesses;
    });
    return sum;
}

}  // namespace

CASE(host_code_must_not_access_device_memory) {
    for (const Hooks& hooks : all)
        for (bool write : {false, true})
            for (Hook hook : {hooks.plain[write], hooks.of_volatile[write], hooks.unaligned[write]}) {
                const Access access = write ? Access::write : Access::read;
                begin(MemoryKind::device);
                call([&] { hook(memory + 256); });  // behind the device memory, so it belongs to the host
                call([&] { hook(memory - 16); });
                CHECK_EQUAL(finding_count(), 0);
                call([&] { hook(memory + 80); });
                CHECK(found("host_access", access, hooks.size));
                CHECK(check_of(finding(0).kind) == Check::memcheck && finding(0).place.offset == 16);
                CHECK_EQUAL(run_counters.host_bytes, 0);
                forget_findings();
                call([&] { hook(memory + 160); });  // in device memory, but outside of the allocation
                CHECK(found("host_access", access, hooks.size) && finding(0).place.offset == 96);
            }
    sim::events::reset();
}

CASE(host_code_may_access_managed_and_pinned_memory) {
    for (const Hooks& hooks : all)
        for (bool write : {false, true})
            for (Hook hook : {hooks.plain[write], hooks.of_volatile[write]}) {
                begin(MemoryKind::managed);
                call([&] { hook(memory + 80); });
                CHECK_EQUAL(finding_count(), 0);
                CHECK_EQUAL(run_counters.host_bytes, hooks.size);
            }
    // Host code must not access memory that a kernel may be accessing.
    for (bool write : {false, true}) {
        Region& region = begin(MemoryKind::managed);
        track(region);
        {
            sim::Clock known = {};
            sim::Work work;
            work.stream = work.lane = work.number = 1;
            work.known = &known;
            sim::events::work_begin(work, false);
            Grid grid(1, 32);
            region.cells[4].reads = grid.thread(0, 0).epoch;
            region.cells[5].write = grid.thread(0, 0).epoch;
        }
        sim::events::work_begin({}, false);
        sim::events::work_end();
        call([&] { all[2].plain[write](memory + 80); });
        CHECK_EQUAL(finding_count(), write);
        forget_findings();
        call([&] { all[2].plain[write](memory + 84); });
        CHECK(finding_count() == 1 && !strcmp(name_of(finding(0).kind), "with_host") && finding(0).bytes == 4);
        CHECK(static_cast<Access>(finding(0).side.access) == (write ? Access::write : Access::read));
    }
    sim::events::reset();
}

CASE(host_code_that_reads_the_target_of_a_pending_copy_is_reported) {
    for (const Hooks& hooks : all)
        for (bool write : {false, true})
            for (Hook hook : {hooks.plain[write], hooks.of_volatile[write]}) {
                sim::events::reset();
                sim::Clock known = {};
                sim::Work work;
                work.call = "a copy";
                work.address = code;
                work.stream = work.lane = work.number = 1;
                work.known = &known;
                sim::events::work_begin(work, false);
                work_writes_host(number(memory + 32), 32);
                sim::events::work_begin({}, false);
                sim::events::work_end();
                CHECK(host_view.copied_bytes >= 32);
                call([&] { hook(memory + 16); });
                call([&] { hook(memory + 64); });
                CHECK_EQUAL(finding_count(), 0);
                call([&] { hook(memory + 48); });
                CHECK(finding_count() == 1 && !strcmp(name_of(finding(0).kind), "with_host"));
                CHECK_EQUAL(finding(0).bytes, hooks.size);
                CHECK(static_cast<Access>(finding(0).side.access) == (write ? Access::write : Access::read));
                CHECK_EQUAL(finding(0).place.offset, 16);
            }
    sim::events::reset();
}

CASE(device_variable_in_host_code_is_its_host_copy) {
    alignas(16) static char variable[64] = {1, 2, 3};
    sim::RegisterGlobal registered("variable", variable, sizeof variable, sim::GlobalKind::device, true);
    char* copy = static_cast<char*>(sim::host_name_of(variable));
    CHECK(copy != variable && copy[2] == 3);
    for (const Hooks& hooks : all)
        for (bool write : {false, true})
            for (Hook hook : {hooks.plain[write], hooks.of_volatile[write]}) {
                const Access access = write ? Access::write : Access::read;
                sim::events::reset();
                variable[31] = variable[32 + hooks.size] = 9;  // a kernel's writes around the variable
                call([&] { hook(copy + 32); });
                CHECK_EQUAL(finding_count(), write);
                forget_findings();
                variable[32 + hooks.size - 1] = 7;
                call([&] { hook(copy + 32); });
                CHECK(found("host_name", access, hooks.size) && check_of(finding(0).kind) == Check::memcheck);
                CHECK(finding(0).place.offset == 32 && !strcmp(finding(0).place.name, "variable"));
                memset(variable + 16, 0, 48);
            }
    sim::events::reset();
    call([&] { all[2].plain[0](copy + 64); });
    call([&] { all[2].plain[1](copy - 16); });
    CHECK_EQUAL(finding_count(), 0);
    sim::events::reset();
}

CASE(each_hook_reports_size_and_kind_of_its_access) {
    for (const Hooks& hooks : all)
        for (bool write : {false, true}) {
            const Hook kinds[] = {hooks.plain[write], hooks.unaligned[write], hooks.of_volatile[write],
                                  hooks.unaligned_volatile[write]};
            for (unsigned kind = 0; kind < 4; ++kind)
                for (bool shared : {false, true}) {
                    sim::events::reset();
                    Floats x;
                    Grid grid(1, 32);
                    char* data = shared ? grid.shared(0) : x.at(0);
                    bool flag = kind > 1 && !shared;  // volatile accesses do not race with each other
                    unit::as_thread(grid.thread(0, 0), [&] { call([&] { kinds[kind](data + 16); }); });
                    Access access = flag && write ? Access::volatile_write
                                    : flag        ? Access::volatile_read
                                    : write       ? Access::write
                                                  : Access::read;
                    CHECK_EQUAL(counted(grid, access, hooks.size), 1);
                    const Region& region =
                        shared ? *find_shared(*grid.thread(0, 0).block, number(data)) : *find_region(number(data));
                    const unsigned first = 16u >> region.shift;
                    const unsigned granules = hooks.size < 4 ? 1 : hooks.size / 4;
                    CHECK_EQUAL(region.shift, hooks.size < 4 ? hooks.size / 2 : 2);
                    for (unsigned i = 0; i < 20; ++i) {
                        const ShadowCell& one = region.cells[i];
                        const Epoch epoch = write && !flag ? one.write : one.reads;
                        bool touched = epoch.serial() == the_launch.first_serial && epoch.atomic() == flag;
                        CHECK_EQUAL(touched, i >= first && i < first + granules);
                    }
                }
        }
    sim::events::reset();
}

CASE(unchecked_thread_has_no_findings) {
    begin(MemoryKind::device);
    sim::Launch launch = {};
    sim::Block block = {};
    sim::Thread thread = {};
    block.launch = &launch;
    thread.block = &block;
    sim::current_thread = &thread;
    for (Hook hook : {all[2].plain[1], all[2].unaligned[0], all[4].plain[0]}) call([&] { hook(memory + 80); });
    sim::current_thread = nullptr;
    CHECK_EQUAL(finding_count(), 0);
    sim::events::reset();
}

CASE(confined_submission_may_access_its_memory_up_to_the_last_byte) {
    sim::events::reset();
    sim::ArenaRange arena = sim::arena_range();
    static Hook asked;
    static char* place;
    auto by_the_host = [] { return sim::sandbox::call([](void**) { return asked(place), 5; }, nullptr); };
    for (const Hooks& hooks : all)
        for (bool write : {false, true})
            for (Hook hook : {hooks.plain[write], hooks.unaligned[write], hooks.of_volatile[write]})
                for (bool confined : {false, true}) {
                    asked = hook;
                    for (unsigned inside :
                         {hooks.size, hooks.size / 2}) {  // bytes from the access to the end of device memory
                        place = arena.base + arena.bytes - inside;
                        const bool refused = confined && inside < hooks.size;
                        Grid grid(1, 32);
                        ThreadState& state = grid.thread(0, 0);
                        sim::Thread& thread = *state.thread;
                        sim::sandbox::confined = confined;
                        CHECK_EQUAL(by_the_host(), confined ? 700 : 5);  // a confined process has closed device memory
                        thread.checks = nullptr;                         // as in a launch without checks
                        CHECK_EQUAL(unit::as_thread(state, [] { asked(place); }), refused ? 700 : 0);
                        thread.checks = &state;
                        sim::sandbox::confined = false;
                        CHECK_EQUAL(finding_count() != 0, confined);
                        CHECK(!confined ||
                              static_cast<Access>(finding(0).side.access) == (write ? Access::write : Access::read));
                    }
                }
    sim::events::reset();
}

CASE(copies_are_split_into_the_largest_aligned_pieces) {
    const struct {
        unsigned offset, bytes;
        unsigned pieces[5];  // numbers of accesses with 1, 2, 4, 8 and 16 bytes
    } copies[] = {{0, 16, {0, 0, 0, 0, 1}}, {0, 48, {0, 0, 0, 0, 3}}, {4, 16, {0, 0, 2, 1, 0}},
                  {1, 6, {2, 2, 0, 0, 0}},  {3, 2, {2, 0, 0, 0, 0}},  {0, 31, {1, 1, 1, 1, 1}},
                  {8, 8, {0, 0, 0, 1, 0}},  {0, 0, {0, 0, 0, 0, 0}}};
    for (auto& copy : copies)
        for (unsigned how = 0; how < 3; ++how) {
            sim::events::reset();
            Floats x;
            Grid grid(1, 32);
            char* to = x.at(0) + copy.offset;
            alignas(16) char from[64];
            memset(from, 5, sizeof from);
            memset(x.at(0), 0, 64);
            void* given = nullptr;
            unit::as_thread(grid.thread(0, 0), [&] {
                given = how == 0   ? sim::checked_memset(to, 5, copy.bytes, code + 8)
                        : how == 1 ? sim::checked_memcpy(to, grid.shared(0) + copy.offset, copy.bytes, code + 9)
                                   : sim::checked_memmove(to, grid.shared(0) + copy.offset, copy.bytes, code + 9);
            });
            CHECK(given == to);
            for (unsigned log2 = 0; log2 < 5; ++log2) {
                CHECK_EQUAL(counted(grid, Access::write, 1u << log2), copy.pieces[log2]);
                CHECK_EQUAL(counted(grid, Access::read, 1u << log2), how ? copy.pieces[log2] : 0);
            }
            SiteTable& sites = grid.thread(0, 0).worker->sites;
            // A copy calls the write's hook at `code + 8` and the read's hook one byte later.
            sites.each([&](AccessSite& site) {
                if (site.counters.accesses) CHECK(site.address == code + (site.access == Access::read ? 9 : 8));
            });
            for (unsigned i = 0; how == 0 && i < 64; ++i) CHECK_EQUAL(x.at(0)[i], i - copy.offset < copy.bytes ? 5 : 0);
        }
    sim::events::reset();
}

CASE(structures_are_read_by_member_or_in_steps_of_16_bytes) {
    const struct {
        unsigned bytes, piece;
    } structures[] = {{16, 4}, {12, 4}, {20, 4}, {32, 16}, {48, 16}, {36, 4}};
    for (auto& one : structures)
        for (bool write : {false, true}) {
            sim::events::reset();
            Floats x;
            Grid grid(1, 32);
            unit::as_thread(grid.thread(0, 0), [&] {
                call([&] {
                    if (write)
                        __wrap___tsan_write_range(x.at(0), one.bytes);
                    else
                        __wrap___tsan_read_range(x.at(0), one.bytes);
                });
            });
            for (unsigned size : {1u, 2u, 4u, 8u, 16u}) {
                CHECK_EQUAL(counted(grid, write ? Access::write : Access::read, size),
                            size == one.piece ? one.bytes / size : 0);
                CHECK_EQUAL(counted(grid, write ? Access::read : Access::write, size), 0);
            }
        }
    sim::events::reset();
}

CASE(memcpy_and_memset_calls_copy_and_report_their_place) {
    using Copy = void* (*)(void*, const void*, size_t);
    const Copy copies[] = {sim::memcpy_here, sim::memmove_here, __wrap___tsan_memcpy, __wrap___tsan_memmove};
    char text[16] = "fifteen letters";
    for (Copy copy : copies) {
        begin(MemoryKind::device);
        void* given = nullptr;
        call([&] { given = copy(memory + 64, text, 16); });
        CHECK(given == memory + 64 && !strcmp(memory + 64, text) && found("host_access", Access::write, 16));
        forget_findings();
        call([&] { copy(text, memory + 80, 4); });
        CHECK(found("host_access", Access::read, 4));
    }
    for (auto* fill : {sim::memset_here, __wrap___tsan_memset}) {
        begin(MemoryKind::device);
        call([&] { CHECK(fill(memory + 64, 3, 16) == memory + 64); });
        CHECK(found("host_access", Access::write, 16) && memory[64] == 3 && memory[79] == 3 && memory[80] == 0);
        memset(memory + 64, 0, 16);
    }
    // Two calls in one function have separate findings.
    begin(MemoryKind::device);
    for (auto* copy : {sim::memcpy_here, sim::memmove_here}) {
        forget_findings();
        call([&] { copy(text, memory + 80, 4); });
        call([&] { copy(text, memory + 80, 4); });
        CHECK_EQUAL(finding_count(), 2);
    }
    forget_findings();
    call([&] { sim::memset_here(memory + 64, 0, 4); });
    call([&] { sim::memset_here(memory + 64, 0, 4); });
    CHECK_EQUAL(finding_count(), 2);
    sim::events::reset();
}

CASE(compiler_generated_copies_are_reported_once) {
    begin(MemoryKind::device);
    char text[16] = "fifteen letters";
    CHECK(sim::late_memcpy(memory + 64, text, 16, code) == memory + 64 && !strcmp(memory + 64, text));
    CHECK(finding_count() && finding(0).bytes == 4 && static_cast<Access>(finding(0).side.access) == Access::write);
    forget_findings();
    CHECK(sim::late_memset(memory + 64, 0, 4, code) == memory + 64 && !memory[64] && memory[68] == text[4]);
    CHECK(found("host_access", Access::write, 4) && finding(0).side.address == code);
    sim::events::reset();
    Floats x;
    Grid grid(1, 32);
    unit::as_thread(grid.thread(0, 0), [&] {
        __wrap___tsan_read_range(x.at(8), 24);
        __wrap___tsan_write_range(x.at(0), 24);
    });
    CHECK(counted(grid, Access::read, 4) == 6 && counted(grid, Access::write, 4) == 6);
    memcpy(x.at(8), text, 16);
    unit::as_thread(grid.thread(0, 0), [&] { sim::late_memcpy(x.at(0), x.at(8), 24, code); });
    CHECK(!strcmp(x.at(0), text) && counted(grid, Access::read, 4) == 6 && counted(grid, Access::write, 4) == 6);
    unit::as_thread(grid.thread(0, 0), [&] {
        sim::late_memset(x.at(8), 1, 16, code);
        sim::late_memcpy(x.at(0), x.at(12), 16, code);
        sim::late_memcpy(x.at(0), x.at(12), 16, code);  // a repeated access also counts
    });
    CHECK(*x.at(8) == 1 && counted(grid, Access::read, 4) == 10 && counted(grid, Access::write, 4) == 14);
}

CASE(host_volatile_accesses_release_and_acquire) {
    for (bool shared : {false, true}) {
        sim::events::reset();
        Floats x;
        Grid grid(2, 32);
        ThreadState &one = grid.thread(0, 0), &other = grid.thread(shared ? 0 : 1, 1);
        char* flag = shared ? grid.shared(0) : x.at(3);
        sim::events::fence(*one.thread, sim::Scope::device);
        one.thread->call_address = other.thread->call_address = nullptr;
        unit::as_thread(one, [&] { call([&] { __wrap___tsan_volatile_write4(flag); }); });
        CHECK(log_of(flag) && !one.thread->call_address);
        if (one.pending) settle(one, 0, nullptr);
        unit::as_thread(other, [&] { call([&] { __wrap___tsan_volatile_read4(flag); }); });
        CHECK(other.extras && other.extras->acquired && other.thread->call_address);
        CHECK_EQUAL(finding_count(), shared);
    }
    sim::events::reset();
}

CASE(atomic_change_of_shared_host_memory_is_noted) {
    for (MemoryKind kind : {MemoryKind::device, MemoryKind::managed}) {
        Region& region = begin(kind);
        const bool both = kind == MemoryKind::managed;
        Grid grid(1, 32);
        for (bool write : {false, true}) {
            call([&] { unit::as_thread(grid.thread(0, 0), [&] { all[2].of_volatile[write](memory + 68); }); });
            CHECK_EQUAL(the_launch.changed.size(), both && write);
        }
        CHECK_EQUAL(the_launch.changed.find(number(memory + 68)) != nullptr, both);
        note_change(number(memory + 72));
        CHECK_EQUAL(the_launch.changed.find(number(memory + 72)) != nullptr, both);
        host_view.shares = false;
        note_change(number(memory + 76));
        host_view.shares = true;
        note_change(number(memory));
        CHECK(!the_launch.changed.find(number(memory + 76)) && !the_launch.changed.find(number(memory)));
        CHECK_EQUAL(host_shares(region), both);
    }
    sim::events::reset();
}

CASE(unordered_access_checks_each_granule) {
    for (const char* dtype : {"float32", "float16", "int8"}) {
        sim::events::reset();
        const int64_t shape[] = {16};
        Region& region = add_allocation({MemoryKind::tensor, memory, 64, "x", dtype, 1, shape, nullptr});
        mark_written(region.base, 64);
        Grid grid(1, 32);
        unordered_access(grid.thread(0, 0), number(memory + 16), Access::atomic, 2, code, {});
        unsigned first = 16u >> region.shift, count = 4u >> region.shift;
        for (unsigned i = 0; i < region.cell_count(); ++i)
            CHECK_EQUAL(region.cells[i].reads.atomic(), i >= first && i < first + count);
        CHECK_EQUAL(counted(grid, Access::atomic, 4), 1);
        // An out-of-bounds access or a write to read-only memory has no effects besides its finding.
        region.read_only = true;
        unmap_cells(region.cells, region.cell_count());
        region.cells = nullptr;
        Grid again(1, 32);
        unordered_access(again.thread(0, 0), number(memory + 16), Access::volatile_read, 2, code + 1, {});
        CHECK(!region.cells && finding_count() == 0);
    }
    sim::events::reset();
}

#define DECLARE_ATOMIC(BITS, T)                                                             \
    T __wrap___tsan_atomic##BITS##_load(const volatile T*, int);                            \
    void __wrap___tsan_atomic##BITS##_store(volatile T*, T, int);                           \
    T __wrap___tsan_atomic##BITS##_exchange(volatile T*, T, int);                           \
    T __wrap___tsan_atomic##BITS##_fetch_add(volatile T*, T, int);                          \
    T __wrap___tsan_atomic##BITS##_fetch_sub(volatile T*, T, int);                          \
    T __wrap___tsan_atomic##BITS##_fetch_and(volatile T*, T, int);                          \
    T __wrap___tsan_atomic##BITS##_fetch_or(volatile T*, T, int);                           \
    T __wrap___tsan_atomic##BITS##_fetch_xor(volatile T*, T, int);                          \
    int __wrap___tsan_atomic##BITS##_compare_exchange_strong(volatile T*, T*, T, int, int); \
    int __wrap___tsan_atomic##BITS##_compare_exchange_weak(volatile T*, T*, T, int, int);   \
    T __wrap___tsan_atomic##BITS##_compare_exchange_val(volatile T*, T, T, int, int);
#define CHECK_ATOMIC(BITS, T)                                                                     \
    {                                                                                             \
        const T large = static_cast<T>(uint64_t(0xa5) << (BITS - 8));                             \
        volatile T value = large;                                                                 \
        T expected = 1;                                                                           \
        CHECK(__wrap___tsan_atomic##BITS##_load(&value, 5) == large);                             \
        __wrap___tsan_atomic##BITS##_store(&value, 12, 5);                                        \
        CHECK(__wrap___tsan_atomic##BITS##_exchange(&value, 10, 5) == 12);                        \
        CHECK(__wrap___tsan_atomic##BITS##_fetch_add(&value, 5, 5) == 10);                        \
        CHECK(__wrap___tsan_atomic##BITS##_fetch_sub(&value, 1, 5) == 15);                        \
        CHECK(__wrap___tsan_atomic##BITS##_fetch_and(&value, 6, 5) == 14);                        \
        CHECK(__wrap___tsan_atomic##BITS##_fetch_or(&value, 9, 5) == 6);                          \
        CHECK(__wrap___tsan_atomic##BITS##_fetch_xor(&value, 3, 5) == 15);                        \
        CHECK(!__wrap___tsan_atomic##BITS##_compare_exchange_strong(&value, &expected, 4, 5, 5)); \
        CHECK(expected == 12 && value == 12);                                                     \
        CHECK(__wrap___tsan_atomic##BITS##_compare_exchange_strong(&value, &expected, 4, 5, 5));  \
        expected = 1;                                                                             \
        CHECK(!__wrap___tsan_atomic##BITS##_compare_exchange_weak(&value, &expected, 8, 5, 5));   \
        CHECK(expected == 4);                                                                     \
        while (!__wrap___tsan_atomic##BITS##_compare_exchange_weak(&value, &expected, 8, 5, 5)) { \
        }                                                                                         \
        CHECK(__wrap___tsan_atomic##BITS##_compare_exchange_val(&value, 1, 2, 5, 5) == 8);        \
        CHECK(__wrap___tsan_atomic##BITS##_compare_exchange_val(&value, 8, 2, 5, 5) == 8);        \
        CHECK(value == 2);                                                                        \
    }
extern "C" {
DECLARE_ATOMIC(8, uint8_t)
DECLARE_ATOMIC(16, uint16_t)
DECLARE_ATOMIC(32, uint32_t)
DECLARE_ATOMIC(64, uint64_t)
}

CASE(compiler_atomics_compute_correct_results){CHECK_ATOMIC(8, uint8_t) CHECK_ATOMIC(16, uint16_t)
                                                   CHECK_ATOMIC(32, uint32_t) CHECK_ATOMIC(64, uint64_t)}

CASE(host_threads_synchronize_through_atomic_and_volatile_variables) {
    using Step = void (*)(uint32_t*);
    const Step leaves[] = {[](uint32_t* at) { __wrap___tsan_atomic32_store(at, 1, 5); },
                           [](uint32_t* at) { __wrap___tsan_atomic32_fetch_add(at, 1, 5); },
                           [](uint32_t* at) { __wrap___tsan_volatile_write4(at); }, [](uint32_t*) {}};
    const Step finds[] = {[](uint32_t* at) { __wrap___tsan_atomic32_load(at, 5); },
                          [](uint32_t* at) { __wrap___tsan_atomic32_exchange(at, 1, 5); },
                          [](uint32_t* at) { __wrap___tsan_volatile_read4(at); }, [](uint32_t*) {}};
    // Each pair has a flag of its own, because the checks handle a volatile read only at the next hook.
    static uint32_t flags[16], *next = flags;
    for (Step leave : leaves)
        for (Step find : finds) {
            sim::host_threads::reset();
            uint32_t& flag = *next++;
            sim::Clock before, after;
            sim::host_threads::begin_function(before, 3, 7);
            leave(&flag);
            sim::host_threads::end_function(after);
            CHECK(after.covers(3, 7) && !sim::host_threads::knows(3, 7));
            find(&flag);
            CHECK_EQUAL(sim::host_threads::knows(3, 7), leave != leaves[3] && find != finds[3]);
            CHECK(!sim::host_threads::knows(3, 8));
        }
    // A store by a thread of a kernel does not order the operations that host threads have waited for.
    sim::host_threads::reset();
    uint32_t flag = 0;
    sim::Clock before, after;
    Grid grid(1, 32);
    sim::host_threads::begin_function(before, 3, 7);
    unit::as_thread(grid.thread(0, 0), [&] { __wrap___tsan_atomic32_store(&flag, 1, 5); });
    sim::host_threads::end_function(after);
    __wrap___tsan_atomic32_load(&flag, 5);
    CHECK(!sim::host_threads::knows(3, 7));
    sim::host_threads::reset();
}
