// Volatile accesses to global memory.
//
// PTX performs each of them as a relaxed operation of the whole system, so that a volatile flag works with fences around
// it. But volatile orders nothing: two such accesses that nothing else orders are a race, as ordinary ones are, unless
// threads synchronize through the location. They do if
//
//   it is the target of an atomic operation, while it is allocated,
//   a thread polls it: reads it in the condition of a while loop, or twice in a row in one place,
//   a thread reads it directly before a fence, or
//   a thread writes it directly after a fence that does not itself follow an atomic or volatile read.
//
// This is often known only after the race. So the finding is held until the launch ends.
#pragma once

#include "checks/core/state.h"

namespace sim::checks {

struct Finding;

// The thread accesses such a location, or executes a fence.
void note_volatile_read(ThreadState& thread, uintptr_t address, unsigned bytes, const void* code);
void note_volatile_write(ThreadState& thread, uintptr_t address, unsigned bytes);
void note_fence(ThreadState& thread);

constexpr bool is_volatile(Access access) {
    return access == Access::volatile_read || access == Access::volatile_write;
}
// A race between two volatile accesses at this address.
void hold_race(const Finding& finding, uintptr_t address);
void report_held_races();  // call it at the end of a launch
void forget_held_races();

}  // namespace sim::checks
