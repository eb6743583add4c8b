// Where in shared memory something lies, as PTX instructions take it: 32 bits, which also are quickly reckoned with. Day 9
// needs it first.
#pragma once

#include <cuda_runtime.h>

namespace llmk {

__device__ __forceinline__ unsigned shared_address(const void* pointer) {
    return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

}  // namespace llmk
