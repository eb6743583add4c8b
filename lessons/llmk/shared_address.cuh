// Shared-memory addresses as PTX instructions take them: 32 bits, in the .shared state space. Source: PTX ISA, section
// "State Spaces: Shared State Space". Day 12 derives the instructions that need them.
#pragma once

#include <cuda_runtime.h>

namespace llmk {

__device__ __forceinline__ unsigned shared_address(const void* pointer) {
    return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

}  // namespace llmk
