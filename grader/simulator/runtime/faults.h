// Faults of kernel code and the watchdog: signal handling while a launch runs.
#pragma once

#include <signal.h>
#include <stdint.h>
#include <time.h>

#include "scheduler.h"

namespace sim {

// Installs signal handlers for the duration of a launch, then restores those of the process.
class FaultHandlers {
  public:
    explicit FaultHandlers(Grid& grid);
    ~FaultHandlers();
    FaultHandlers(const FaultHandlers&) = delete;
    FaultHandlers& operator=(const FaultHandlers&) = delete;
};

// Per OS thread that runs blocks: an alternate stack, on which a stack overflow can be handled, and a timer of CPU
// time.
class WorkerSignals {
  public:
    explicit WorkerSignals(Worker& worker);
    ~WorkerSignals();
    WorkerSignals(const WorkerSignals&) = delete;
    WorkerSignals& operator=(const WorkerSignals&) = delete;

  private:
    stack_t previous_;
    bool has_stack_ = false;
#if defined(__linux__)
    timer_t timer_;
#endif
    bool has_timer_ = false;
};

// Records the address of a whole program's code, before its first line runs.
void keep_place_of_program(void* address);

// Places in a program's code, in the form of return addresses; null after the last one. On a stack, an earlier call may
// have left the return address of code that has no source line, so the reader takes the first place that has one.
struct Places {
    static constexpr size_t most = 8;
    const void* address[most] = {};
};

// Returns the places in the program's code where a signal may have arrived, the most probable first. During a launch,
// the place is that of the running CUDA thread. `top`: the end of the host's stack, if the caller knows it.
Places places_in_program(const void* context, uintptr_t top = 0);
// Returns whether a memory fault was a write, where the processor tells.
bool was_write(const void* context);

// Asks the running launch, if there is one, to end soon.
bool stop_running_grid();

}  // namespace sim
