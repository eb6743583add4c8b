// Products of float32 on tensor cores: a float is a tf32 number and a rest, and of the four products of parts three count.
// Day 12 derives it.
#pragma once

#include <cuda_runtime.h>

namespace llmk {

// A float as two tf32 numbers, which have 10 bits behind the point where a float has 23: the nearest one, and what is left.
// Of the rest tensor cores see the first 10 bits too: 22 and the sign of the rest, so x is one part in 2^23 off, or less.
struct Split {
    unsigned big, small;
};

__device__ __forceinline__ Split split(float x) {
    const unsigned big = (__float_as_uint(x) + 0x1000u) & 0xffffe000u;  // rounded: half of the last place is added
    return {big, __float_as_uint(x - __uint_as_float(big))};            // exact; tensor cores ignore the last 13 bits
}

// accumulators [16, 8] += a [16, 8] b [8, 8] in tf32. Of the accumulators a lane holds what it does in llmk::mma_m16n8k16. Of
// operand A, column i % 4 of rows i / 4 and i / 4 + 8, and the same two of column i % 4 + 4; of operand B, of column i / 4
// rows i % 4 and i % 4 + 4.
__device__ __forceinline__ void mma_m16n8k8_tf32(float (&accumulators)[4], unsigned a0, unsigned a1, unsigned a2,
                                                 unsigned a3, unsigned b0, unsigned b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(accumulators[0]), "+f"(accumulators[1]), "+f"(accumulators[2]), "+f"(accumulators[3])
        : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

// The same for floats. Tensor cores cut off what does not fit into an accumulator, they do not round: so the products with a
// small part, which are a thousandth of the others, are added up by themselves, and many small errors stay small.
// With PRODUCTS = 1 there is only big times big: that is tf32.
template <int PRODUCTS>
__device__ __forceinline__ void mma_3xtf32(float (&accumulators)[4], float (&small)[4], const Split (&a)[4], Split b0,
                                           Split b1) {
    mma_m16n8k8_tf32(accumulators, a[0].big, a[1].big, a[2].big, a[3].big, b0.big, b1.big);
    if constexpr (PRODUCTS == 3) {
        mma_m16n8k8_tf32(small, a[0].small, a[1].small, a[2].small, a[3].small, b0.big, b1.big);
        mma_m16n8k8_tf32(small, a[0].big, a[1].big, a[2].big, a[3].big, b0.small, b1.small);
    }
}

}  // namespace llmk
