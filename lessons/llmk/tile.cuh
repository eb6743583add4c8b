// Tiles: rows of a matrix in shared memory that all threads of a block reuse. Day 6 derives them.
#pragma once

#include <cuda_runtime.h>

namespace llmk {

// Copy kRows consecutive rows of DIM elements from k and from v to two tiles, with all kThreads threads of the block:
// neighboring threads read neighboring elements. Rows from `count` on become zeros.
template <int DIM, int kThreads, typename T, int kRows>
__device__ __forceinline__ void load_keys_and_values(T (&k_tile)[kRows][DIM], T (&v_tile)[kRows][DIM], const T* k,
                                                     const T* v, int count) {
    for (int i = threadIdx.x; i < kRows * DIM; i += kThreads) {
        const int row = i / DIM, column = i % DIM;
        k_tile[row][column] = row < count ? k[i] : T(0.0f);
        v_tile[row][column] = row < count ? v[i] : T(0.0f);
    }
}

}  // namespace llmk
