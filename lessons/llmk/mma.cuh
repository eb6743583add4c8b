// Tensor cores through ldmatrix and mma.sync (sm_80). PTX specifies which lane holds which element, so a lane can keep
// computing on results in its registers. Source: PTX ISA, section "Warp Level Matrix Multiply-Accumulate Instructions".
// Days 4, 5 and 9 use these functions, day 12 derives them.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <type_traits>

#include "llmk/shared_address.cuh"

namespace llmk {

// ldmatrix.x4: load four 8 x 8 matrices of 16-bit elements from shared memory. Lane i passes the address of row i % 8
// of matrix i / 8. It receives, in to[m], elements i % 4 * 2 and i % 4 * 2 + 1 of row i / 4 of matrix m: the layout of
// mma.sync's operands.
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

// ldmatrix.x4.trans: like ldmatrix_x4, but load the transpose of each matrix. Lane i receives rows i % 4 * 2 and i % 4
// * 2 + 1 of column i / 4.
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

// stmatrix.x4 (sm_90): store four 8 x 8 matrices from registers to shared memory; the inverse of ldmatrix_x4.
__device__ __forceinline__ void stmatrix_x4(const unsigned (&from)[4], void* row) {
    const unsigned to = shared_address(row);
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(from[0]),
                 "r"(from[1]), "r"(from[2]), "r"(from[3])
                 : "memory");
}

// mma.sync.m16n8k16: accumulators [16, 8] += a [16, 16] b [16, 8], with f32 accumulators. With g = i / 4 and t = i % 4,
// lane i holds
//   accumulators   columns 2 t and 2 t + 1 of row g, then of row g + 8
//   a              columns 2 t and 2 t + 1 of row g, then of row g + 8; then columns 2 t + 8 and 2 t + 9 of both
//   b0, b1         rows 2 t and 2 t + 1 of column g; rows 2 t + 8 and 2 t + 9
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

// Round two floats to T and pack them into one register, x in the lower half.
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
