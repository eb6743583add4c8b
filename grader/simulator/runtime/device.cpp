// Clocks, sleeping, polling and traps.
#include "sim/device.h"

#include <string.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "scheduler.h"
#include "sim/error_codes.h"

namespace sim {

namespace {

int64_t nanoseconds(clockid_t clock) {
    timespec now;
    clock_gettime(clock, &now);
    return static_cast<int64_t>(now.tv_sec) * 1000000000 + now.tv_nsec;
}

// A polling thread lets other threads run after `polls_before_spin` reads of one address in a row, or after
// `reads_before_spin` reads of any addresses.
constexpr unsigned polls_before_spin = 2;
constexpr unsigned reads_before_spin = 16;

uint64_t value_at(const void* address, unsigned bytes) {
    uint64_t value = 0;
    memcpy(&value, address, bytes < sizeof value ? bytes : sizeof value);
    return value;
}

// Returns whether the thread polls another address than before, or sees another value there. The first poll of an
// address does not read it, because the address may be invalid: the kernel's own access reports that.
bool saw_something_new(Thread& self, const void* address, unsigned bytes) {
    if (self.watched != address) {
        self.watched = address;
        self.watched_bytes = 0;
        return true;
    }
    uint64_t value = value_at(address, bytes);
    bool changed = self.watched_bytes != bytes || self.watched_value != value;
    self.watched_bytes = bytes;
    self.watched_value = value;
    return changed;
}

}  // namespace

// A thread that reads the clock may wait for time to pass, so it does not wait for another thread.
long long clock_cycles() {
    if (current_thread) current_worker->stalled_rounds = 0;
    return nanoseconds(CLOCK_MONOTONIC);
}

uint64_t global_timer() {
    if (current_thread) current_worker->stalled_rounds = 0;
    return static_cast<uint64_t>(nanoseconds(CLOCK_REALTIME));
}

void nanosleep(unsigned) { spin_hint(); }

void spin_hint() {
    if (!current_thread) return;
    current_thread->call_address = __builtin_return_address(0);
    spin(*current_thread);
}

void condition_begins() {
    if (current_thread) ++current_thread->conditions;
}

void condition_ends() {
    if (current_thread) --current_thread->conditions;
}

void polled(Thread& self, const void* address, unsigned bytes) {
    self.stalled = !saw_something_new(self, address, bytes);
    if (!self.stalled) current_worker->stalled_rounds = 0;
    self.polls = self.polled == address ? self.polls + 1 : 1;
    self.polled = address;
    if (self.polls < polls_before_spin && ++self.polling_reads < reads_before_spin) return;
    spin(self);
    self.polling_reads = 0;
    self.polled = address;
    self.polls = polls_before_spin - 1;
}

void volatile_read(const void* address, unsigned bytes) {
    // Counts reads even if the value changed: a thread that repeatedly reads the same addresses waits for something.
    if (!current_thread) return;
    current_thread->polls_atomically = false;
    polled(*current_thread, address, bytes);
}

void read_only_load(const void* address, size_t bytes) {
    Thread* self = current_thread;
    if (self && self->block->checked) events::read_only_load(*self, address, bytes, __builtin_return_address(0));
}

void trap() {
    raise_fault(events::FaultKind::trap, cudaErrorLaunchFailure, nullptr, __builtin_return_address(0), nullptr);
}

}  // namespace sim

// clock() in a kernel file: see sim/c_library.h.
extern "C" __attribute__((visibility("default"))) clock_t sim_clock() {
    return sim::current_thread ? static_cast<clock_t>(sim::clock_cycles()) : clock();
}

// __builtin_trap() in a kernel file: see sim/c_library.h.
extern "C" __attribute__((visibility("default"), noreturn)) void sim_trap() {
    using namespace sim;
    if (current_thread)
        raise_fault(events::FaultKind::trap, cudaErrorLaunchFailure, nullptr, __builtin_return_address(0), nullptr);
    __builtin_trap();
}

// Code compiled with -fsanitize=return calls this when a function with a result reaches its closing brace without a
// return statement.
extern "C" __attribute__((visibility("default"), noreturn)) void __wrap___ubsan_handle_missing_return(void*) {
    using namespace sim;
    if (current_thread)
        raise_fault(events::FaultKind::missing_return, cudaErrorLaunchFailure, nullptr, __builtin_return_address(0),
                    nullptr);
    fputs("error: a function with a result has reached its closing brace without return\n", stderr);
    abort();
}
