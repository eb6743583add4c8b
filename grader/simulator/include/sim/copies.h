// Copies of memory by functions: memcpy, memmove and memset.
//
// What a kernel file calls by these names, the front end turns into sim::copy_bytes and its like, which g++ would else
// leave uninstrumented. What the compilers and the C++ library make calls of themselves (the copy of a large structure,
// std::copy) lands in the functions below, as kernel libraries are linked with --wrap=memcpy (grader/simulator/hooks.py);
// they are in the kernel library itself, and go on to the checks under names of the simulator's own.
#pragma once

#include <stddef.h>

#pragma GCC visibility push(default)
namespace sim {

// What the C functions do, and the checks are told. `code`: where the call returns to.
void* checked_memcpy(void* to, const void* from, size_t bytes, const void* code);
void* checked_memmove(void* to, const void* from, size_t bytes, const void* code);
void* checked_memset(void* to, int value, size_t bytes, const void* code);
// The same, as called from here.
void* memcpy_here(void* to, const void* from, size_t bytes);
void* memmove_here(void* to, const void* from, size_t bytes);
void* memset_here(void* to, int value, size_t bytes);
// Told of in code of the host alone.
void* host_memcpy(void* to, const void* from, size_t bytes, const void* code);
void* host_memset(void* to, int value, size_t bytes, const void* code);

}  // namespace sim
#pragma GCC visibility pop

// g++ turns copies of so many bytes into a load and a store, which it instruments; clang++ instruments all of them.
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

// Weak: a program may have several files.
#define SIM_COPY extern "C" __attribute__((visibility("hidden"), weak, used, noinline, no_sanitize("thread"))) void*
#if defined(__SANITIZE_THREAD__)
// g++ has told of a structure that it copies by memcpy.
SIM_COPY __wrap_memcpy(void* to, const void* from, size_t bytes) {
    return ::sim::host_memcpy(to, from, bytes, __builtin_return_address(0));
}
SIM_COPY __wrap_memset(void* to, int value, size_t bytes) {
    return ::sim::host_memset(to, value, bytes, __builtin_return_address(0));
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
