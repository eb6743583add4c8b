// Happens-before between the host's threads: which stream operations each thread knows to be complete.
//
// A wait for a stream or an event counts for all host threads, whichever thread waited: streams::host_clock(). A host
// function that runs in a stream knows more: everything that the stream ordered before it. It passes this on through
// C++ synchronization: a thread that it starts, a mutex that it unlocks, a semaphore, a barrier, an atomic or volatile
// variable. A thread that joins, locks, waits or reads there afterwards then knows it as well. The functions that a
// program calls to synchronize are wrapped in grader/execution/programs/start.cpp. Its atomic and volatile accesses are
// reported by the checks.
//
// Not seen: synchronization through the operating system alone (a pipe, a signal, a file), or through a plain variable.
#pragma once

#include "clock.h"

namespace sim::host_threads {

// The lock of the history of operations. Hold it to change the history, or to read it without the DeviceLock. It costs
// nothing in a program that has not started a second thread.
class HistoryLock {
  public:
    HistoryLock();
    ~HistoryLock();
    HistoryLock(const HistoryLock&) = delete;
    HistoryLock& operator=(const HistoryLock&) = delete;

  private:
    bool held_;
};

// Returns whether the calling thread knows this operation to be complete, beyond streams::host_clock().
bool knows(uint32_t lane, uint32_t number);
// Adds to a clock what the calling thread knows beyond streams::host_clock().
void add_knowledge(Clock& clock);

// Called before and after a host function. It is operation `number` of its lane and is ordered after `known`. `after`
// receives the operations that the function learned from other threads to be complete.
void begin_function(const Clock& known, uint32_t lane, uint32_t number);
void end_function(Clock& after);

// Publishes what the calling thread knows through an object, or acquires what others have published there.
void release(const void* object);
void acquire(const void* object);
// Called before a volatile read. Acquires at once, and again when the thread's knowledge is next needed: another thread
// may release between this call and the read.
void acquire_later(const void* object);

void reset();

}  // namespace sim::host_threads
