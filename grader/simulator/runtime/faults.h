// Faults of kernel code, and the watchdog: signals while a launch runs.
#pragma once

#include <signal.h>
#include <time.h>

#include "scheduler.h"

namespace sim {

// Signal handlers for the duration of a launch; the process gets its own back afterwards.
class FaultHandlers {
  public:
    explicit FaultHandlers(Grid& grid);
    ~FaultHandlers();
    FaultHandlers(const FaultHandlers&) = delete;
    FaultHandlers& operator=(const FaultHandlers&) = delete;
};

// What each OS thread that runs blocks needs: a stack on which a stack overflow can be handled, and a clock that ticks
// while it computes.
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

// A whole program's own code is where this address is, from its first line on.
void keep_place_of_program(void* address);

// Where in the program's code a signal came, as a return address: in a launch the thread's place. Null where nothing tells.
const void* place_in_program(const void* context);

// Asks the launch that is running, if one is, to end soon.
bool stop_running_grid();

}  // namespace sim
