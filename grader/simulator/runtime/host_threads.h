// What one thread of the host knows to be over, and how it comes to know it from another.
//
// A wait for a stream or an event counts for all threads of the host, whoever made it: streams::host_clock(). A function of
// the host that a stream runs knows more: all that it comes after. It hands that on by what orders threads in C++: a thread
// that it starts, a mutex that it unlocks, a semaphore, a barrier, an atomic or volatile variable. Whoever joins, locks, waits or
// reads there afterwards knows it, too. A program's calls come from grader/execution/programs/start.cpp, its variables from the checks.
//
// Not seen: what orders threads through the kernel alone (a pipe, a signal, a file), or through a plain variable.
#pragma once

#include "clock.h"

namespace sim::host_threads {

// Held while the history of operations is changed, or read by a thread of the host that holds no DeviceLock. It costs nothing
// in a program that has not started a second thread.
class HistoryLock {
  public:
    HistoryLock();
    ~HistoryLock();
    HistoryLock(const HistoryLock&) = delete;
    HistoryLock& operator=(const HistoryLock&) = delete;

  private:
    bool held_;
};

// Whether the calling thread knows this operation to be over, beyond streams::host_clock().
bool knows(uint32_t lane, uint32_t number);
// Adds to a clock what the calling thread knows beyond it.
void tell(Clock& clock);

// Around a function of the host, which comes after `known` and is this operation of its lane itself. `after` learns what it has
// heard from others.
void begin_function(const Clock& known, uint32_t lane, uint32_t number);
void end_function(Clock& after);

// The calling thread leaves what it knows at an object, or takes what others have left there.
void release(const void* object);
void acquire(const void* object);
// As acquire(), for a volatile read that is yet to happen: in case it sees what somebody leaves there meanwhile.
void acquire_later(const void* object);

void reset();

}  // namespace sim::host_threads
