// Clocks, sleeping, polling and traps.
#include "sim/device.h"

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

// So often a thread may look at one address in vain before the others get a turn.
constexpr unsigned polls_before_spin = 2;

}  // namespace

long long clock_cycles() { return nanoseconds(CLOCK_MONOTONIC); }

uint64_t global_timer() { return static_cast<uint64_t>(nanoseconds(CLOCK_REALTIME)); }

void nanosleep(unsigned) { spin_hint(); }

void spin_hint() {
    if (!current_thread) return;
    current_thread->call_address = __builtin_return_address(0);
    spin(*current_thread);
}

void polled(Thread& self, const void* address) {
    if (self.polled != address) {
        self.polled = address;
        self.polls = 1;
    } else if (++self.polls >= polls_before_spin) {
        spin(self);
        self.polled = address;
        self.polls = polls_before_spin - 1;
    }
}

void volatile_read(const void* address) {
    // The value may have changed, but a thread that looks at the same place again and again waits for something.
    if (current_thread) polled(*current_thread, address);
}

void trap() {
    raise_fault(events::FaultKind::trap, cudaErrorLaunchFailure, nullptr, __builtin_return_address(0), nullptr);
}

}  // namespace sim

// What clock() is in a kernel file: sim/c_library.h.
extern "C" __attribute__((visibility("default"))) clock_t sim_clock() {
    return sim::current_thread ? static_cast<clock_t>(sim::clock_cycles()) : clock();
}
