// Copies of whole structures, as clang makes them: a call of memcpy, which its older versions leave uninstrumented.
//
// Kernel libraries are linked with --wrap=memcpy (grader/simulator/hooks.py), so such a call lands in the function below,
// which is in the kernel library itself, and goes on to the checks under a name of the simulator's own.
#pragma once

#include <stddef.h>

#pragma GCC visibility push(default)
namespace sim {

// What the C functions do, and the checks are told. `code`: where the call returns to.
void* checked_memcpy(void* to, const void* from, size_t bytes, const void* code);
void* checked_memmove(void* to, const void* from, size_t bytes, const void* code);
void* checked_memset(void* to, int value, size_t bytes, const void* code);

}  // namespace sim
#pragma GCC visibility pop

#if defined(__clang__)
#if __has_feature(thread_sanitizer)
#define SIM_COPY extern "C" __attribute__((visibility("hidden"), used, noinline, no_sanitize("thread"))) void*
SIM_COPY __wrap_memcpy(void* to, const void* from, size_t bytes) {
    return ::sim::checked_memcpy(to, from, bytes, __builtin_return_address(0));
}
SIM_COPY __wrap_memmove(void* to, const void* from, size_t bytes) {
    return ::sim::checked_memmove(to, from, bytes, __builtin_return_address(0));
}
SIM_COPY __wrap_memset(void* to, int value, size_t bytes) {
    return ::sim::checked_memset(to, value, bytes, __builtin_return_address(0));
}
#undef SIM_COPY
#endif
#endif
