// What a finding says of an error that the runtime reports.
#include "checks/errors.h"

#include "checks/access.h"
#include "grid.h"
#include "unit.h"

using namespace sim;
using namespace sim::checks;
using events::FaultKind;

namespace {

const char code[64] = {};

const Finding& last() { return finding(finding_count() - 1); }
bool is(const char* kind) { return finding_count() && !strcmp(last().kind, kind); }

const Finding& faulted(FaultKind kind, Thread* thread, uint64_t data, const void* address) {
    Launch launch = {};
    launch.id = 77;
    forget_findings();
    events::fault(launch, {kind, thread, reinterpret_cast<void*>(data), address, "so it is", true});
    return last();
}

__attribute__((noinline)) void function_of_ours() { forget_findings(); }

}  // namespace

CASE(a_thread_that_is_not_checked_is_named_all_the_same) {
    Block block = {};
    block.index = {1, 2, 3};
    Thread thread = {};
    thread.block = &block;
    thread.index = {4, 5, 6};
    thread.linear = 7;
    Finding made = finding_for(Check::fault, "trap", &thread, code + 1);
    CHECK(made.check == Check::fault && !strcmp(made.kind, "trap") && made.side.address == code + 1);
    CHECK(made.side.has_thread && made.side.block_known && made.side.thread == 7);
    for (unsigned i = 0; i < 3; ++i) CHECK(made.side.block[i] == 1 + i && made.side.index[i] == 4 + i);
    CHECK(made.count == 1 && made.kernel == ~0u);
    made = finding_for(Check::fault, "trap", nullptr, code);
    CHECK(!made.side.has_thread && !made.side.block_known && made.count == 1);
}

CASE(a_call_that_is_refused_says_why) {
    forget_findings();
    events::refused(nullptr, "cudaMalloc", 2, "there is no more", code);
    CHECK(is("refused") && last().check == Check::fault && last().number == 2 && last().count == 1);
    CHECK(last().side.address == code && last().kernel == ~0u);
    CHECK(!strcmp(last().detail, "cudaMalloc: there is no more"));
}

CASE(a_fault_says_of_which_launch_and_where) {
    const uint64_t wild = uint64_t(1) << 40;
    CHECK(!strcmp(faulted(FaultKind::illegal_address, nullptr, wild, code).kind, "illegal_address"));
    CHECK(last().launch == 77 && last().data == wild && !strcmp(last().detail, "so it is"));
    CHECK(last().side.address == code + 1 && last().check == Check::memcheck && !last().side.fallback);
    CHECK(!strcmp(faulted(FaultKind::illegal_address, nullptr, 65535, code).kind, "null_pointer"));
    CHECK(!strcmp(faulted(FaultKind::illegal_address, nullptr, 65536, code).kind, "illegal_address"));
    CHECK(!strcmp(faulted(FaultKind::misaligned_address, nullptr, 100, code).kind, "misaligned"));
    // A call into the simulator has its return address, which lies behind it as it is.
    CHECK(faulted(FaultKind::trap, nullptr, 0, code).side.address == code);
    Block block = {};
    Thread thread = {};
    thread.block = &block;
    thread.call_address = code + 8;
    CHECK(faulted(FaultKind::division_by_zero, &thread, 0, code).side.address == code + 1);
    CHECK(last().side.fallback == code + 8);
    CHECK(faulted(FaultKind::division_by_zero, &thread, 0, code + 8).side.address == code + 8);
    CHECK(!faulted(FaultKind::infinite_loop, nullptr, 0, nullptr).side.address);
}

CASE(a_stack_that_is_full_is_blamed_on_the_last_access_or_call) {
    static const void* stack[5000];
    auto* ours = reinterpret_cast<const char*>(&function_of_ours);
    Fiber fiber = {reinterpret_cast<char*>(stack), reinterpret_cast<char*>(stack + 5000), nullptr};
    Block block = {};
    Thread thread = {};
    thread.block = &block;
    thread.fiber = &fiber;
    auto blamed = [&] { return faulted(FaultKind::stack_overflow, &thread, 0, ours).side.address; };
    CHECK(blamed() == ours + 1);
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
    CHECK(blamed() == ours + 1);
    stack[100] = nullptr;
}

CASE(who_waits_for_ever_is_counted_place_by_place) {
    static Thread threads[40];
    Block block = {};
    block.threads = threads;
    block.thread_count = 40;
    for (unsigned i = 0; i < 40; ++i) {
        threads[i] = {};
        threads[i].block = &block;
        threads[i].state = i < 38 ? State::waiting : i == 38 ? State::exited : State::ready;
        threads[i].wait = i == 32 ? Wait::mbarrier : Wait::block_barrier;
        threads[i].wait_label = i == 32 ? "a label" : "of another time";
        threads[i].wait_site.line = i == 32 ? 9 : 7;
        threads[i].call_address = code + (i == 32);
    }
    forget_findings();
    events::sync_error(events::SyncError::deadlock, block, nullptr, nullptr);
    char expected[400];
    snprintf(expected, sizeof expected,
             "37 threads (first: 0) at __syncthreads, {site %u line 7}; 1 thread (first: 32) at a label, {site %u line "
             "9}; 1 exited",
             site_id(code), site_id(code + 1));
    CHECK(is("deadlock") && !strcmp(last().detail, expected));
    CHECK(last().side.address == code && last().side.line == 7);
    CHECK(last().other.address == code + 1 && last().other.line == 9);
    // What does not fit is cut off, to the character.
    for (unsigned length = 1; length < 800; ++length) {
        bool exited = length < 400;
        static char label[400];
        memset(label, 'x', sizeof label);
        label[length % 400] = 0;
        threads[38].state = exited ? State::exited : State::ready;
        for (unsigned i = 0; i < 38; ++i) threads[i].wait = Wait::mbarrier, threads[i].wait_label = label;
        forget_findings();
        events::sync_error(events::SyncError::deadlock, block, nullptr, nullptr);
        char whole[2000];
        snprintf(whole, sizeof whole,
                 "37 threads (first: 0) at %s, {site %u line 7}; 1 thread (first: 32) at %s, {site %u line 9}%s", label,
                 site_id(code), label, site_id(code + 1), exited ? "; 1 exited" : "");
        whole[399] = 0;
        CHECK(!strcmp(last().detail, whole));
    }
}
