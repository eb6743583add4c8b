// Tensor cores through PTX, ldmatrix and mma.sync: which lane holds which element is documented, so the lanes can go on
// with a result where it is. Day 9 derives it.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <type_traits>

#include "llmk/shared_address.cuh"

namespace llmk {

// Four 8 x 8 matrices of 16-bit numbers in shared memory: lane i gives the address of row i % 8 of matrix i / 8, and
// receives of each matrix two neighbors, elements i % 4 * 2 and the next of row i / 4: how mma.sync wants its operands.
__device__ __forceinline__ void ldmatrix_x4(unsigned (&to)[4], unsigned from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(from)
                 : "memory");
}

template <typename T>
__device__ __forceinline__ void ldmatrix_x4(unsigned (&to)[4], const T* row) {
    ldmatrix_x4(to, shared_address(row));
}

// The same, of each matrix's transpose: two elements one above the other.
__device__ __forceinline__ void ldmatrix_x4_trans(unsigned (&to)[4], unsigned from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(from)
                 : "memory");
}

template <typename T>
__device__ __forceinline__ void ldmatrix_x4_trans(unsigned (&to)[4], const T* row) {
    ldmatrix_x4_trans(to, shared_address(row));
}

// The way back (stmatrix, Hopper): four 8 x 8 matrices from registers to shared memory.
__device__ __forceinline__ void stmatrix_x4(const unsigned (&from)[4], void* row) {
    const unsigned to = shared_address(row);
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(from[0]),
                 "r"(from[1]), "r"(from[2]), "r"(from[3])
                 : "memory");
}

// accumulators [16, 8] += a [16, 16] b [16, 8]. Of the accumulators, lane i holds columns i % 4 * 2 and the next of row
// i / 4, and the same two of row i / 4 + 8. Of operand A, such a pair from each quarter: upper left, lower left, upper
// right, lower right. Of operand B, rows i % 4 * 2 and the next of column i / 4, and the two that lie 8 rows below them.
template <typename T>
__device__ __forceinline__ void mma_m16n8k16(float (&accumulators)[4], const unsigned (&a)[4], unsigned b0,
                                             unsigned b1) {
    if constexpr (std::is_same<T, __half>::value) {
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
            "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(accumulators[0]), "+f"(accumulators[1]), "+f"(accumulators[2]), "+f"(accumulators[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    } else {
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
            "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(accumulators[0]), "+f"(accumulators[1]), "+f"(accumulators[2]), "+f"(accumulators[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    }
}

// Two numbers, rounded, in one register: x in the lower half.
template <typename T>
__device__ __forceinline__ unsigned pack_pair(float x, float y) {
    if constexpr (std::is_same<T, __half>::value) {
        const __half2 both = __floats2half2_rn(x, y);
        return *reinterpret_cast<const unsigned*>(&both);
    } else {
        const __nv_bfloat162 both = __floats2bfloat162_rn(x, y);
        return *reinterpret_cast<const unsigned*>(&both);
    }
}

}  // namespace llmk
