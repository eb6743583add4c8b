// Linker symbols.
//
// A process may hold NVIDIA's own libraries beside the simulator: PyTorch built for CUDA loads libcudart globally. A
// call of a symbol that both define would be bound to whichever library was loaded first. So a function of CUDA or of
// the C library that the simulator replaces keeps its name in the language and has another symbol:
//
//     cudaError_t cudaGetLastError() SIM_SYMBOL(cudaGetLastError);  // sim_cudaGetLastError
#pragma once

#define SIM_QUOTE_(text) #text
#define SIM_QUOTE(text) SIM_QUOTE_(text)
// The prefix that a platform adds to C symbols: "_" on macOS, nothing on Linux.
#define SIM_SYMBOL(name) __asm__(SIM_QUOTE(__USER_LABEL_PREFIX__) "sim_" #name)
// Declares a function of the runtime API: its name, and its parameters.
#define SIM_API(name, ...) cudaError_t name(__VA_ARGS__) SIM_SYMBOL(name)

// The headers of the runtime API are both C and C++. These macros stand for what only C++ has.
#ifdef __cplusplus
#define SIM_DEFAULT(value) = value
#define SIM_API_INLINE inline
#define SIM_BEGIN_C extern "C" {
#define SIM_END_C }
#else
#define SIM_DEFAULT(value)
#define SIM_API_INLINE static inline
#define SIM_BEGIN_C
#define SIM_END_C
#endif

// The members gridDim and blockDim of structures: in CUDA files the front end renames them, because these names are
// macros there (sim/identity.h).
#ifdef SIM_HOST_FILE
#define sim_gridDim gridDim
#define sim_blockDim blockDim
#endif
