// What the hooks share with the events.
#pragma once

#include "checks/core/site.h"

namespace sim::checks {

// What host code must not touch, outside any launch.
struct HostView {
    uintptr_t arena_base;
    size_t arena_bytes;     // 0: no device memory yet
    uintptr_t copied_base;  // around memory that copies have written to: streams.h knows more
    size_t copied_bytes;    // 0: none
    bool shares;            // memory that kernels see as well
};
extern HostView host_view;

// The running launch has changed what is there, by an atomic or volatile operation.
void note_change(uintptr_t address);

// Atomic operations, and volatile accesses to global memory: they do not race with their like.
void unordered_access(ThreadState& thread, uintptr_t address, Access access, unsigned size_log2, const void* code,
                      bool reads, bool block_scope);

}  // namespace sim::checks
