// The primitives for asynchronous copies from global to shared memory (cp.async): start, commit a group, wait.
//
// The bytes arrive when the copying thread waits. Other threads of the block see them after a barrier that follows the
// wait.
#pragma once

#include "sim/collective.h"
#include "sim/device.h"
#include "sim/c_library.h"

// Copies 4, 8 or 16 bytes between addresses aligned to that size. The last `zero_fill` bytes of the destination become
// zero, and those of the source are not read.
SIM_INLINE void __pipeline_memcpy_async(void* __restrict__ shared, const void* __restrict__ global, size_t bytes,
                                        size_t zero_fill = 0, const char* file = __builtin_FILE(),
                                        unsigned line = static_cast<unsigned>(__builtin_LINE())) {
    bool allowed = (bytes == 4 || bytes == 8 || bytes == 16) && zero_fill <= bytes &&
                   reinterpret_cast<uintptr_t>(shared) % bytes == 0 && reinterpret_cast<uintptr_t>(global) % bytes == 0;
    if (!allowed) {
        __assert_fail("__pipeline_memcpy_async: 4, 8 or 16 bytes, both addresses aligned to that size", file, line,
                      "__pipeline_memcpy_async");
    }
    ::sim::async_copy(shared, global, bytes, zero_fill, ::sim::cache_operator(bytes));
}

SIM_INLINE void __pipeline_commit() { ::sim::async_copy_commit(); }

// Waits until at most `groups` of this thread's committed groups are pending.
SIM_INLINE void __pipeline_wait_prior(size_t groups) { ::sim::async_copy_wait(static_cast<unsigned>(groups)); }
