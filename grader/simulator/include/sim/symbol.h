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
