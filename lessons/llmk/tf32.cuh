// float32 matmuls on tf32 tensor cores (3xTF32). A float is split into two tf32 numbers; three of the four partial
// products are added. Source: PTX ISA, section "Warp Level Matrix Multiply-Accumulate Instructions: mma". Day 12
// derives it.
#pragma once

#include <cuda_runtime.h>

namespace llmk {

// A float as the sum of two tf32 numbers, which have 10 fraction bits where a float has 23: the nearest tf32 number,
// and the remainder. Of the remainder, tensor cores use 10 fraction bits too. So the two parts have 22 significant
// bits, the sign of the remainder is worth one more, and the relative error is at most 2^-23.
struct Split {
    unsigned big, small;
};

__device__ __forceinline__ Split split(float x) {
    const unsigned big =
        (__float_as_uint(x) + 0x1000u) & 0xffffe000u;         // round to nearest: add half a unit in the last place
    return {big, __float_as_uint(x - __uint_as_float(big))};  // exact; tensor cores ignore the last 13 bits
}

// mma.sync.m16n8k8 in tf32: accumulators [16, 8] += a [16, 8] b [8, 8]. With g = i / 4 and t = i % 4, lane i holds
//   accumulators   as in llmk::mma_m16n8k16
//   a0, a1         column t of rows g and g + 8
//   a2, a3         column t + 4 of rows g and g + 8
//   b0, b1         rows t and t + 4 of column g
__device__ __forceinline__ void mma_m16n8k8_tf32(float (&accumulators)[4], unsigned a0, unsigned a1, unsigned a2,
                                                 unsigned a3, unsigned b0, unsigned b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(accumulators[0]), "+f"(accumulators[1]), "+f"(accumulators[2]), "+f"(accumulators[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// The mma of floats: accumulators + small += a b. Tensor cores truncate when they add to an accumulator. The two
// partial products with a small part are about 2^-11 of big * big, so they have accumulators of their own, `small`, and
// the truncation errors stay small. TERMS = 1 multiplies the big parts only, which is plain tf32.
template <int TERMS>
__device__ __forceinline__ void mma_3xtf32(float (&accumulators)[4], float (&small)[4], const Split (&a)[4], Split b0,
                                           Split b1) {
    mma_m16n8k8_tf32(accumulators, a[0].big, a[1].big, a[2].big, a[3].big, b0.big, b1.big);
    if constexpr (TERMS == 3) {
        mma_m16n8k8_tf32(small, a[0].small, a[1].small, a[2].small, a[3].small, b0.big, b1.big);
        mma_m16n8k8_tf32(small, a[0].big, a[1].big, a[2].big, a[3].big, b0.small, b1.small);
    }
}

}  // namespace llmk
