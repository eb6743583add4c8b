// The begin of an instruction, and the end of a launch because of one.
#pragma once

#include "scheduler.h"

namespace sim {

// Ends the launch because an instruction was used in a way that PTX leaves undefined. The finding says why.
[[noreturn]] inline void misused(Thread& self, Site site, const char* why) {
    self.wait_site = site;
    events::sync_error(events::SyncError::instruction_misused, *self.block, &self, why);
    kill_launch(719);  // cudaErrorLaunchFailure
}

// Ends the launch because the simulator needs more memory. `why` is a sentence.
[[noreturn]] inline void out_of_memory(const void* address, const char* why) {
    raise_fault(events::FaultKind::out_of_memory, 2, nullptr, address, why);  // cudaErrorMemoryAllocation
}
constexpr const char* too_many_copies = "the simulator is out of memory for pending asynchronous copies";
constexpr const char* too_many_mmas = "the simulator is out of memory for pending MMAs";

// Records the instruction that the running thread executes, and returns the thread; null in host code.
inline Thread* enter(const void* caller) {
    if (current_thread) current_thread->call_address = caller;
    return current_thread;
}
inline Thread* enter(Site site, const void* caller) {
    if (current_thread) current_thread->wait_site = site;
    return enter(caller);
}

// cp.async.bulk and cp.reduce.async.bulk between shared and global memory.
void check_bulk_copy(Thread& self, Site site, const void* shared, const void* global, uint32_t bytes);

}  // namespace sim
