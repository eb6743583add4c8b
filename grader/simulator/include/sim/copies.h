// Memory copies by functions: memcpy, memmove and memset.
//
// The front end turns calls by these names in a kernel file into sim::copy_bytes and related functions, because g++
// would leave them uninstrumented. Calls that the compilers and the C++ library generate (the copy of a large
// structure, std::copy) go to the functions __wrap_memcpy etc. below, because kernel libraries are linked with
// --wrap=memcpy (grader/simulator/hooks.py). The __wrap_ functions are part of the kernel library. They call the checks
// by names that only the simulator defines.
#pragma once

#include <stddef.h>

#pragma GCC visibility push(default)
namespace sim {

// memcpy, memmove and memset that report their accesses to the checks. `code`: the return address of the call.
void* checked_memcpy(void* to, const void* from, size_t bytes, const void* code);
void* checked_memmove(void* to, const void* from, size_t bytes, const void* code);
void* checked_memset(void* to, int value, size_t bytes, const void* code);
// The same functions, which use their own return address as `code`.
void* memcpy_here(void* to, const void* from, size_t bytes);
void* memmove_here(void* to, const void* from, size_t bytes);
void* memset_here(void* to, int value, size_t bytes);
// For calls that the compiler generated: they report only accesses that its instrumentation did not report before.
void* late_memcpy(void* to, const void* from, size_t bytes, const void* code);
void* late_memset(void* to, int value, size_t bytes, const void* code);

}  // namespace sim
#pragma GCC visibility pop

// Returns whether to replace a copy of this size. g++ turns copies of 1, 2, 4 or 8 bytes into an instrumented load and
// store, and leaves larger ones uninstrumented. clang++ instruments all copies.
#if defined(__SANITIZE_THREAD__)
#define SIM_CALL(BYTES) (!(__builtin_constant_p(BYTES) && (BYTES == 1 || BYTES == 2 || BYTES == 4 || BYTES == 8)))
#else
#define SIM_CALL(BYTES) false
#endif
namespace sim {

inline __attribute__((always_inline)) void* copy_bytes(void* to, const void* from, size_t bytes) {
    return SIM_CALL(bytes) ? memcpy_here(to, from, bytes) : __builtin_memcpy(to, from, bytes);
}
inline __attribute__((always_inline)) void* move_bytes(void* to, const void* from, size_t bytes) {
    return SIM_CALL(bytes) ? memmove_here(to, from, bytes) : __builtin_memmove(to, from, bytes);
}
inline __attribute__((always_inline)) void* set_bytes(void* to, int value, size_t bytes) {
    return SIM_CALL(bytes) ? memset_here(to, value, bytes) : __builtin_memset(to, value, bytes);
}

}  // namespace sim
#undef SIM_CALL

// The symbols are weak, because each file of a program defines them.
#define SIM_COPY extern "C" __attribute__((visibility("hidden"), weak, used, noinline, no_sanitize("thread"))) void*
#if defined(__SANITIZE_THREAD__)
// g++ may translate the copy of a structure to both a hook call and a memcpy call. late_memcpy does not report a copy
// that a hook has reported.
SIM_COPY __wrap_memcpy(void* to, const void* from, size_t bytes) {
    return ::sim::late_memcpy(to, from, bytes, __builtin_return_address(0));
}
SIM_COPY __wrap_memset(void* to, int value, size_t bytes) {
    return ::sim::late_memset(to, value, bytes, __builtin_return_address(0));
}
#elif defined(__clang__)
#if __has_feature(thread_sanitizer)
#define SIM_EACH_COPY
SIM_COPY __wrap_memcpy(void* to, const void* from, size_t bytes) {
    return ::sim::checked_memcpy(to, from, bytes, __builtin_return_address(0));
}
SIM_COPY __wrap_memset(void* to, int value, size_t bytes) {
    return ::sim::checked_memset(to, value, bytes, __builtin_return_address(0));
}
#endif
#endif
#if defined(__SANITIZE_THREAD__) || defined(SIM_EACH_COPY)
SIM_COPY __wrap_memmove(void* to, const void* from, size_t bytes) {
    return ::sim::checked_memmove(to, from, bytes, __builtin_return_address(0));
}
#endif
#undef SIM_EACH_COPY
#undef SIM_COPY
