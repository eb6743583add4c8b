// CUDA's declaration keywords. The front end translates `__shared__`, `__constant__`, `__device__` variables and
// `<<<>>>`. The remaining ones are attributes that have no effect here, or are C++ attributes.
#pragma once

// Most kernels access local variables by name only. With g++, -fsanitize=object-size would add up to a third to their
// compile time and find nothing. The front end puts SIM_GLOBAL in place of __global__ where a kernel takes the address
// of a variable (device_functions.py).
#define __global__ __attribute__((no_sanitize("object-size")))
#define SIM_GLOBAL
#define __host__
#define __device__
#define __constant__
#define __managed__
#define __grid_constant__
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __maxnreg__(...)
#define __forceinline__ inline __attribute__((always_inline))
#define __inline_hint__

// The front end puts SIM_HELPER before `__device__` functions and SIM_NOINLINE in place of `__noinline__`. Compilers do
// not instrument the copy of a structure that is passed to a function. So builds with checks inline as many calls as
// possible. clang++ ignores always_inline for a recursive function. g++ reports an error for it. So for g++, functions
// are not always_inline, but the limits of its inlining are raised.
#define SIM_HELPER inline
#define SIM_NOINLINE __attribute__((noinline))
#if defined(__SANITIZE_THREAD__)
#undef SIM_NOINLINE
#define SIM_NOINLINE
#elif defined(__clang__)
#if __has_feature(thread_sanitizer)
#undef SIM_HELPER
#undef SIM_NOINLINE
#define SIM_HELPER inline __attribute__((always_inline))
#define SIM_NOINLINE
#endif
#endif
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __builtin_align__(bytes) __attribute__((aligned(bytes)))
#define __nv_pure__ __attribute__((pure))

#if !defined(__clang__)
#define __builtin_assume(condition) ((void)0)
#endif

#define CUDART_CB
#define CUDARTAPI
