// Code that the kernels of the corpus run before and after the tcgen05 instructions that they test. The block has 128
// threads.
#pragma once

#include "llmk/mbarrier.cuh"
#include "llmk/tcgen05.cuh"

namespace tcgen05 {

// Allocate columns of tensor memory and initialize an mbarrier for one arrival.
template <int BLOCKS>
__device__ __forceinline__ void prepare(unsigned* taken, int columns, uint64_t* complete) {
    if (threadIdx.x < 32) llmk::tcgen05_alloc<BLOCKS>(taken, columns);
    if (threadIdx.x == 0) {
        llmk::mbarrier_init(complete, 1);
        llmk::fence_mbarrier_init();
    }
}

// Fill a tile in shared memory with words near `word`.
template <int WORDS>
__device__ __forceinline__ void fill(unsigned (&tile)[WORDS], const float* x, unsigned word) {
    for (int i = threadIdx.x; i < WORDS; i += 128) tile[i] = word + (unsigned)x[i];
}
constexpr unsigned kOnes = 0x3f803f80u;  // two bf16
constexpr unsigned kFp4 = 0x22222222u;   // eight fp4

// Store 32 columns of this warp's lanes.
__device__ __forceinline__ void store_columns(float* out, unsigned columns) {
    float sums[32];
    llmk::tcgen05_ld(sums, columns);
    llmk::tcgen05_wait_ld();
    for (int c = 0; c < 32; ++c) out[32 * threadIdx.x + c] = sums[c];
}

}  // namespace tcgen05
