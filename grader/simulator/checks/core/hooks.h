// Declarations that the hooks share with the events.
#pragma once

#include "checks/core/access.h"

namespace sim::checks {

// Memory that host code must not access outside of a launch.
struct HostView {
    uintptr_t arena_base;
    size_t arena_bytes;     // bytes of device memory; 0: none yet
    uintptr_t copied_base;  // start of a range that contains all memory that copies have written to: streams.h
    size_t copied_bytes;    // 0: none
    bool shares;            // there is memory that host code and kernels may both access
};
extern HostView host_view;

// The running launch has changed this memory by an atomic or volatile operation.
void note_change(uintptr_t address);

// Checks an atomic operation, or a volatile access to global memory. Such accesses do not race with each other.
void unordered_access(ThreadState& thread, uintptr_t address, Access access, unsigned size_log2, const void* code,
                      AtomicAccess how);

}  // namespace sim::checks
