// The words that CUDA adds to declarations. `__shared__`, `__constant__`, `__device__` variables and `<<<>>>` are the
// front end's work; what remains are attributes that mean nothing here, or a plain C++ attribute.
#pragma once

#define __global__
#define __host__
#define __device__
#define __constant__
#define __managed__
#define __grid_constant__
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __maxnreg__(...)
#define __block_size__(...)
#define __forceinline__ inline __attribute__((always_inline))
#define __inline_hint__

// What the front end puts before `__device__` functions and for `__noinline__`. The compilers' instrumentation does not
// see a structure that is copied for a call, so with checks every call that can be is inlined. clang++ leaves recursive
// calls alone even so; g++ would refuse them, and gets large limits instead.
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
