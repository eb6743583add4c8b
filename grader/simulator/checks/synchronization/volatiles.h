// Volatile accesses to global memory.
//
// PTX performs a volatile access as a relaxed operation of system scope, so a volatile flag with fences around it
// works. But volatile alone orders nothing. Two unordered accesses to a location are a race, like ordinary ones, if both
// are volatile, or if one is a volatile write and the other one an atomic operation. There are these exceptions:
//
// - Threads synchronize through the location. Then none of these pairs is a race. Threads do so in each of these cases:
//   - A thread polls the location: it reads it in the condition of a loop, or into a variable that the condition tests
//     (grader/frontend/polls.py), or it reads it again and again in one place until the value changes.
//   - A thread writes the location directly after a fence, unless an atomic or volatile read directly precedes the
//     fence.
// - Two volatile accesses are not a race if an atomic operation accesses the location before its memory is freed.
// - A volatile write and an atomic operation are not a race if threads may wait by that operation. They may if it is a
//   compare-and-swap, or if it has left a value unchanged.
//
// An exception often becomes known only after the race, so the finding is held until the launch ends.
#pragma once

#include "checks/core/state.h"

namespace sim::checks {

struct Finding;

// Called when the thread reads or writes volatile memory, or executes a fence.
void note_volatile_read(ThreadState& thread, uintptr_t address, unsigned bytes, const void* code);
void note_volatile_write(ThreadState& thread, uintptr_t address, unsigned bytes);
void note_fence(ThreadState& thread);

// Called after an atomic operation. `changed`: the new value differs from the old one.
void note_atomic(ThreadState& thread, const void* code, AtomicOp op, bool changed);

constexpr bool is_volatile(Access access) {
    return access == Access::volatile_read || access == Access::volatile_write;
}
// Returns whether threads are known to synchronize through the location of a cell. `cell`: its address.
bool is_polled(uintptr_t cell);
// Stores a race between two volatile accesses, or between a volatile write and an atomic operation, until the launch
// ends.
void hold_race(const Finding& finding, uintptr_t address);
void report_held_races();  // call it at the end of a launch
void forget_held_races();

}  // namespace sim::checks
