// Tensor cores through WMMA: fragments of a 16 x 16 x 16 mma, and functions that load them. Day 4 derives it. Source:
// CUDA C++ Programming Guide, section "Warp Matrix Functions".
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mma.h>

#include <type_traits>

namespace llmk {

// Operands and accumulators of D = A B + C.
template <typename T>
using OperandA = nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, 16, 16, 16, T, nvcuda::wmma::row_major>;
// A row of a weight or key matrix is a column of B, so B is column-major.
template <typename T, typename Layout = nvcuda::wmma::col_major>
using OperandB = nvcuda::wmma::fragment<nvcuda::wmma::matrix_b, 16, 16, 16, T, Layout>;
using Accumulator = nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float>;

// Load a fragment from a tile in shared memory, whose rows are `pitch` elements apart. For f16, nvcc compiles it to
// ldmatrix, which fills four registers at once.
template <typename Use, typename Layout>
__device__ __forceinline__ void load_fragment(nvcuda::wmma::fragment<Use, 16, 16, 16, __half, Layout>& operand,
                                              const __half* tile, int pitch) {
    nvcuda::wmma::load_matrix_sync(operand, tile, pitch);
}

// For bf16, nvcc does not infer that the tile is in shared memory, and emits one load per register. So use the PTX
// instruction of load_matrix_sync with the .shared state space, which nvcc compiles to ldmatrix. Source: PTX ISA,
// section "Warp Level Matrix Multiply-Accumulate Instructions: wmma.load".
template <typename Use, typename Layout>
__device__ __forceinline__ void load_fragment(nvcuda::wmma::fragment<Use, 16, 16, 16, __nv_bfloat16, Layout>& operand,
                                              const __nv_bfloat16* tile, int pitch) {
    unsigned* word = reinterpret_cast<unsigned*>(operand.x);
    const unsigned from = static_cast<unsigned>(__cvta_generic_to_shared(tile));
    if constexpr (std::is_same<Use, nvcuda::wmma::matrix_a>::value) {
        asm volatile("wmma.load.a.sync.aligned.row.m16n16k16.shared.bf16 {%0, %1, %2, %3}, [%4], %5;"
                     : "=r"(word[0]), "=r"(word[1]), "=r"(word[2]), "=r"(word[3])
                     : "r"(from), "r"(pitch)
                     : "memory");
    } else if constexpr (std::is_same<Layout, nvcuda::wmma::row_major>::value) {
        asm volatile("wmma.load.b.sync.aligned.row.m16n16k16.shared.bf16 {%0, %1, %2, %3}, [%4], %5;"
                     : "=r"(word[0]), "=r"(word[1]), "=r"(word[2]), "=r"(word[3])
                     : "r"(from), "r"(pitch)
                     : "memory");
    } else {
        asm volatile("wmma.load.b.sync.aligned.col.m16n16k16.shared.bf16 {%0, %1, %2, %3}, [%4], %5;"
                     : "=r"(word[0]), "=r"(word[1]), "=r"(word[2]), "=r"(word[3])
                     : "r"(from), "r"(pitch)
                     : "memory");
    }
}

template <int kDown, int kAcross>
__device__ __forceinline__ void zero_fragments(Accumulator (&accumulators)[kDown][kAcross]) {
#pragma unroll
    for (int i = 0; i < kDown; ++i) {
#pragma unroll
        for (int j = 0; j < kAcross; ++j) nvcuda::wmma::fill_fragment(accumulators[i][j], 0.0f);
    }
}

}  // namespace llmk
