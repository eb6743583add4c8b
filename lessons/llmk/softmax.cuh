// What every online softmax needs. Day 6 derives it; power_of_2 is day 8's.
#pragma once

#include <cuda_runtime.h>

#include <cmath>

namespace llmk {

constexpr float kLog2E = 1.4426950408889634f;  // exp(x) = exp2(x log2 e), and exp2 is one instruction less

// What scores are compared with: their maximum, or 0 where no key was seen yet, as -inf - -inf would be NaN.
__device__ __forceinline__ float finite_max_or_zero(float maximum) { return maximum == -INFINITY ? 0.0f : maximum; }

// What a sum of weights is divided by, as a factor: a query that sees no key gives zeros.
__device__ __forceinline__ float reciprocal_or_zero(float sum) { return sum > 0 ? 1 / sum : 0.0f; }

// 2^x, in one instruction; exp2f takes three more to be right for results below 2^-126, which nobody would see here.
__device__ __forceinline__ float ex2_approx(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

}  // namespace llmk
