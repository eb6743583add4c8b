// Volatile accesses to global memory.
//
// PTX performs a volatile access as a relaxed operation of system scope, so a volatile flag with fences around it
// works. But volatile alone orders nothing. Two unordered volatile accesses are a race, like ordinary ones, unless
// threads synchronize through the location. Threads do so in each of these cases:
//
// - An atomic operation accesses the location before its memory is freed.
// - A thread polls the location: it reads it in the condition of a while loop, or twice in a row in one place.
// - A thread reads the location directly before a fence.
// - A thread writes the location directly after a fence, unless an atomic or volatile read directly precedes the fence.
//
// Such a case often occurs only after the race, so the finding is held until the launch ends.
#pragma once

#include "checks/core/state.h"

namespace sim::checks {

struct Finding;

// Called when the thread reads or writes volatile memory, or executes a fence.
void note_volatile_read(ThreadState& thread, uintptr_t address, unsigned bytes, const void* code);
void note_volatile_write(ThreadState& thread, uintptr_t address, unsigned bytes);
void note_fence(ThreadState& thread);

constexpr bool is_volatile(Access access) {
    return access == Access::volatile_read || access == Access::volatile_write;
}
// Stores a race between two volatile accesses at this address until the launch ends.
void hold_race(const Finding& finding, uintptr_t address);
void report_held_races();  // call it at the end of a launch
void forget_held_races();

}  // namespace sim::checks
