// Runs a function as a simulated thread: on a stack of its own, in a launch that the function can abort.
#pragma once

#include "checks/core/state.h"
#include "runtime/context.h"
#include "runtime/scheduler.h"

namespace unit {

// Runs a function like a thread of a kernel. Returns CUDA's error if the function ends the launch, otherwise 0.
template <typename F>
int as_thread(sim::checks::ThreadState& state, F what, sim::Grid& grid) {
    static sim::Worker worker;
    static F* running;
    sim::Thread& thread = *state.thread;
    sim::Fiber* before = thread.fiber;
    worker.grid = &grid;
    running = &what;
    sim::current_worker = &worker;
    sim::current_thread = &thread;
    thread.fiber = worker.fibers.take();
    auto entry = [] {
        (*running)();
        sim::leave_grid(worker);
    };
    sim_switch_context(&worker.host_context, sim::make_context(thread.fiber->top, entry));
    worker.fibers.give(thread.fiber);
    sim::current_worker = nullptr;
    sim::current_thread = nullptr;
    thread.fiber = before;
    return grid.error;
}
template <typename F>
int as_thread(sim::checks::ThreadState& state, F what) {
    sim::Grid grid = {};
    grid.workers = 1;
    return as_thread(state, what, grid);
}

}  // namespace unit
