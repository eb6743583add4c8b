// Tests of findings about errors that the simulator's runtime reports.
#include "checks/memory/errors.h"
#include "runtime/async_operations.h"

#include "checks/core/access.h"
#include "checks/core/hooks.h"
#include "found.h"
#include "grid.h"
#include "unit.h"

using namespace sim;
using namespace sim::checks;
using events::FaultKind;

namespace {

const char code[64] = {};

const Finding& last() { return finding(finding_count() - 1); }
bool is_named(const Finding& finding, const char* kind) { return !strcmp(name_of(finding.kind), kind); }
bool is(const char* kind) { return finding_count() && !strcmp(name_of(last().kind), kind); }

const Finding& faulted(FaultKind kind, Thread* thread, uint64_t data, const void* address) {
    Launch launch = {};
    launch.id = 77;
    forget_findings();
    events::fault(launch, {kind, thread, reinterpret_cast<void*>(data), address, "so it is", true});
    return last();
}

__attribute__((noinline)) void function_of_ours() { forget_findings(); }

}  // namespace

CASE(fault_of_an_unchecked_thread_names_the_thread) {
    Block block = {};
    block.index = {1, 2, 3};
    Thread thread = {};
    thread.block = &block;
    thread.index = {4, 5, 6};
    thread.linear = 7;
    Finding made = finding_for(FindingKind::trap, &thread, code + 1);
    CHECK(check_of(made.kind) == Check::fault && !strcmp(name_of(made.kind), "trap") && made.side.address == code + 1);
    CHECK(made.side.has_thread && made.side.block_known && made.side.thread == 7);
    CHECK(!memcmp(&made.side.block, &block.index, 12) && !memcmp(&made.side.index, &thread.index, 12));
    CHECK(made.count == 1 && made.kernel == ~0u);
    made = finding_for(FindingKind::trap, nullptr, code);
    CHECK(!made.side.has_thread && !made.side.block_known && made.count == 1);
}

CASE(refused_call_gives_the_reason) {
    forget_findings();
    events::refused(nullptr, "cudaMalloc", 2, "there is no more", code);
    CHECK(is("refused") && check_of(last().kind) == Check::fault && unit::number_in(last()) == 2 && last().count == 1);
    CHECK(last().side.address == code && last().kernel == ~0u);
    CHECK(unit::says(last(), "cudaMalloc | there is no more"));
}

CASE(fault_gives_launch_and_place) {
    const uint64_t wild = uint64_t(1) << 40;
    CHECK(is_named(faulted(FaultKind::illegal_address, nullptr, wild, code), "illegal_address"));
    CHECK(last().launch == 77 && unit::number_in(last()) == wild);
    CHECK(last().side.address == code && check_of(last().kind) == Check::memcheck && !last().side.fallback);
    CHECK(is_named(faulted(FaultKind::illegal_address, nullptr, 65535, code), "null_pointer"));
    CHECK(is_named(faulted(FaultKind::illegal_address, nullptr, 65536, code), "illegal_address"));
    CHECK(is_named(faulted(FaultKind::misaligned_address, nullptr, 100, code), "misaligned"));
    // All places are given as return addresses, which are behind the instruction.
    CHECK(faulted(FaultKind::trap, nullptr, 0, code).side.address == code);
    Block block = {};
    Thread thread = {};
    thread.block = &block;
    thread.call_address = code + 8;
    CHECK(faulted(FaultKind::division_by_zero, &thread, 0, code).side.address == code);
    CHECK(last().side.fallback == code + 8);
    CHECK(!faulted(FaultKind::infinite_loop, nullptr, 0, nullptr).side.address);
}

CASE(each_fault_kind_has_its_name_and_check) {
    struct {
        FaultKind kind;
        const char* name;
        Check check;
    } kinds[] = {
        {FaultKind::illegal_address, "illegal_address", Check::memcheck},
        {FaultKind::misaligned_address, "misaligned", Check::memcheck},
        {FaultKind::stack_overflow, "stack_overflow", Check::memcheck},
        {FaultKind::infinite_loop, "infinite_loop", Check::synccheck},
        {FaultKind::division_by_zero, "division_by_zero", Check::fault},
        {FaultKind::illegal_instruction, "illegal_instruction", Check::fault},
        {FaultKind::out_of_memory, "out_of_memory", Check::fault},
        {FaultKind::trap, "trap", Check::fault},
        {FaultKind::assertion, "assertion", Check::fault},
        {FaultKind::shared_memory_exceeded, "shared_memory_exceeded", Check::fault},
        {FaultKind::device_exception, "device_exception", Check::fault},
        {FaultKind::missing_return, "missing_return", Check::fault},
        {FaultKind::local_bounds, "out_of_bounds", Check::memcheck},
    };
    for (auto [kind, name, check] : kinds) {
        const Finding& made = faulted(kind, nullptr, uint64_t(1) << 40, code);
        CHECK(!strcmp(name_of(made.kind), name) && check_of(made.kind) == check);
    }
}

CASE(failed_check_of_clang_is_about_a_local_variable) {
    const Place& place = faulted(FaultKind::local_bounds, nullptr, 0, code).place;
    CHECK(place.known && place.kind == RegionKind::local_array && !*place.name);
}

CASE(each_sync_error_has_its_name) {
    using events::SyncError;
    static Warp warp;
    static Thread threads[32];
    Block block = {};
    block.threads = threads;
    block.thread_count = 32;
    block.barriers[0].first = &threads[1];
    for (unsigned i = 0; i < 32; ++i) {
        threads[i] = {};
        threads[i].block = &block;
        threads[i].warp = &warp;
        threads[i].lane = static_cast<uint8_t>(i);
        threads[i].wait = Wait::block_barrier;
        threads[i].wait_site.line = 20 + i;
        threads[i].call_address = code + i;
    }
    warp.threads = threads;
    warp.argument[3] = 17;
    warp.at_collective = ~0u;
    warp.tag[4] = 1;
    threads[3].wait_mask = 0xf0;
    struct {
        SyncError kind;
        const char* name;
        uint64_t number;
    } kinds[] = {
        {SyncError::deadlock, "deadlock", 0},
        {SyncError::barrier_sites_differ, "barrier_sites_differ", 0},
        {SyncError::own_lane_not_in_mask, "own_lane_not_in_mask", 0xf0},
        {SyncError::collectives_differ, "collectives_differ", 0},
        {SyncError::shuffle_from_inactive_lane, "shuffle_from_inactive_lane", 17},
        {SyncError::barrier_threads_invalid, "barrier_threads_invalid", 0},
        {SyncError::grid_sync_not_cooperative, "grid_sync_not_cooperative", 0},
        {SyncError::mbarrier_not_initialized, "mbarrier_not_initialized", 0},
        {SyncError::instruction_misused, "instruction_misused", 0},
    };
    for (auto [kind, name, number] : kinds) {
        forget_findings();
        events::sync_error(kind, block, &threads[3], "how");
        CHECK(is(name) && check_of(last().kind) == Check::synccheck);
        if (number) CHECK_EQUAL(unit::number_in(last()), number);
        CHECK(last().side.address == code + 3 && last().side.line == 23);
        bool barriers = kind == SyncError::barrier_sites_differ, lanes = kind == SyncError::collectives_differ;
        const bool explained = std::holds_alternative<Reason>(last().payload);
        CHECK(unit::says(last(), barriers || lanes ? "__syncthreads | __syncthreads" : explained ? "how" : ""));
        CHECK(last().other.line == (barriers ? 21u : lanes ? 24u : 0u));
    }
    // If no specific thread caused the error, the finding names the first thread.
    forget_findings();
    events::sync_error(SyncError::barrier_threads_invalid, block, nullptr, nullptr);
    CHECK(last().side.address == code && last().side.line == 20 && unit::says(last(), ""));
    // Long texts are truncated.
    static char longer[600];
    memset(longer, 'x', sizeof longer - 1);
    forget_findings();
    events::sync_error(SyncError::instruction_misused, block, &threads[3], longer);
    CHECK_EQUAL(strlen(unit::facts(last()).text), 399);
    CHECK(last().side.line == 23);
}

CASE(lanes_of_one_mask_at_different_places_are_reported) {
    static Warp warp;
    static Thread threads[32];
    Block block = {};
    block.threads = threads;
    block.thread_count = 32;
    for (unsigned i = 0; i < 32; ++i) {
        threads[i] = {};
        threads[i].block = &block;
        threads[i].warp = &warp;
        threads[i].lane = static_cast<uint8_t>(i);
        threads[i].wait = Wait::exchange;
        threads[i].wait_label = i == 5 ? "one" : "the other";
        threads[i].wait_site.line = 20 + i;
        // Lane 6 is in the mask, but waits elsewhere. Lane 0 waits for other lanes. Lanes 5 and 7 wait in calls that
        // differ from lane 0's call, and the finding names one of these lanes.
        warp.tag[i] = i == 3 || i == 4 ? 1 : 2;
    }
    warp.threads = threads;
    warp.at_collective = 0b10111001;
    threads[3].wait_mask = 0b11111000;
    forget_findings();
    events::sync_error(events::SyncError::collectives_differ, block, &threads[3], nullptr);
    CHECK(is("collectives_differ") && last().other.line == 25 && last().side.line == 23);
    CHECK(unit::says(last(), "the other | one"));
}

CASE(out_of_bounds_index_replaces_the_fault_that_it_causes) {
    unit::Grid grid(1, 32);
    ThreadState& state = grid.thread(0, 1);
    ThreadExtras& extras = extras_of(state);
    for (bool index : {true, false}) {
        extras.index = {code, 70, "float [64]"};
        extras.has_index = index;
        state.pending = true;
        const char* expected = index ? "index_out_of_bounds" : "trap";
        CHECK(is_named(faulted(FaultKind::trap, state.thread, 0, code), expected));
        CHECK(state.pending == !index && finding_count() == 1);
        extras.has_index = state.pending = false;
    }
}

CASE(suspicious_runtime_calls_are_reported) {
    forget_findings();
    events::waits_for_unrecorded_event("cudaEventSynchronize", code);
    CHECK(is("event_not_recorded") && unit::says(last(), "cudaEventSynchronize"));
    events::default_stream_used("a copy", code + 1);
    CHECK(is("default_stream") && unit::says(last(), "a copy") && last().side.address == code + 1);
    CHECK(finding_count() == 2);
}

CASE(sandbox_finding_names_the_forbidden_access) {
    for (bool write : {true, false}) {
        forget_findings();
        events::not_its_own("not_its_stack", code, 12, write, code + 3);
        CHECK(is("not_its_stack") && check_of(last().kind) == Check::memcheck && last().bytes == 12);
        CHECK(last().side.access == static_cast<uint8_t>(write ? Access::write : Access::read));
        CHECK(unit::number_in(last()) == reinterpret_cast<uint64_t>(code) && last().side.address == code + 3);
    }
}

CASE(kernel_waits_for_the_host_only_on_unchanged_host_memory) {
    using events::MemoryKind;
    alignas(32) static float memory[16];
    unit::Grid grid(1, 32);
    CHECK(!events::waits_for_host(memory));
    for (MemoryKind kind : {MemoryKind::device, MemoryKind::managed, MemoryKind::pinned_host}) {
        forget_regions();
        events::allocation(
            {kind, reinterpret_cast<char*>(memory), sizeof memory, nullptr, nullptr, 0, nullptr, nullptr});
        Region& region = *find_region(reinterpret_cast<uintptr_t>(memory));
        bool shared = kind != MemoryKind::device;
        CHECK(events::waits_for_host(memory) == shared);
        track(region);
        CHECK(events::waits_for_host(memory) == shared);
        note_change(reinterpret_cast<uintptr_t>(memory));
        CHECK(!events::waits_for_host(memory) && events::waits_for_host(memory + 1) == shared);
        the_launch.changed.clear();
        region.cells[2].write = grid.thread(0, 0).epoch;
        CHECK(!events::waits_for_host(memory + 2) && events::waits_for_host(memory + 1) == shared);
    }
    forget_regions();
}

CASE(stack_overflow_names_the_last_access_or_call) {
    static const void* stack[5000];
    auto* ours = reinterpret_cast<const char*>(&function_of_ours);
    Fiber fiber = {reinterpret_cast<char*>(stack), reinterpret_cast<char*>(stack + 5000), nullptr};
    Block block = {};
    Thread thread = {};
    thread.block = &block;
    thread.fiber = &fiber;
    auto blamed = [&] { return faulted(FaultKind::stack_overflow, &thread, 0, ours).side.address; };
    CHECK(blamed() == ours);
    stack[1] = reinterpret_cast<const void*>(&abort);
    stack[2] = ours + 5;
    stack[3] = ours + 6;
    CHECK(blamed() == ours + 5);
    site_id(code + 20);
    for (unsigned place : {4095u, 4096u}) {
        stack[place] = code + 20;
        CHECK(blamed() == (place < 4096 ? code + 20 : ours + 5));
        stack[place] = nullptr;
    }
    stack[1] = stack[2] = stack[3] = nullptr;
    fiber.top = reinterpret_cast<char*>(stack + 100);
    stack[100] = code + 20;
    CHECK(blamed() == ours);
    stack[100] = nullptr;
}

CASE(deadlock_counts_waiting_threads_by_place) {
    static Thread threads[40];
    static Mbarrier barrier = {};
    barrier.phase = 3, barrier.pending = 1, barrier.expected = 2, barrier.bytes = -16;
    Block block = {};
    block.threads = threads;
    block.thread_count = 40;
    for (unsigned i = 0; i < 40; ++i) {
        threads[i] = {};
        threads[i].block = &block;
        threads[i].state = i < 38 ? State::waiting : i == 38 ? State::exited : State::ready;
        threads[i].wait = i == 32 ? Wait::mbarrier : Wait::block_barrier;
        threads[i].wait_label = "of another time";
        if (i == 32) threads[i].mbarrier = &barrier;
        threads[i].wait_site.line = i == 32 ? 9 : 7;
        threads[i].call_address = code + (i == 32);
    }
    forget_findings();
    events::sync_error(events::SyncError::deadlock, block, nullptr, nullptr);
    CHECK(is("deadlock"));
    const auto& blocked = std::get<BlockedThreads>(last().payload);
    const Waiting *many = blocked.waits.places, *one = many + 1;
    CHECK(blocked.exited == 1 && blocked.waits.count == 2);
    CHECK(many->threads == 37 && many->first == 0 && many->line == 7 && many->address == code);
    CHECK(!strcmp(many->operation.chars, "__syncthreads") && !many->mbarrier.known);
    CHECK(one->threads == 1 && one->first == 32 && one->line == 9 && one->address == code + 1);
    CHECK(!strcmp(one->operation.chars, "mbarrier") && one->mbarrier.known && one->mbarrier.phase == 3);
    CHECK(one->mbarrier.missing_arrivals == 1 && one->mbarrier.expected_arrivals == 2);
    CHECK_EQUAL(one->mbarrier.missing_bytes, -16);
    CHECK(last().side.address == code && last().side.line == 7);
    CHECK(last().other.address == code + 1 && last().other.line == 9);
}
