// Functions of every online softmax. Day 6 derives them.
#pragma once

#include <cuda_runtime.h>

#include <cmath>

namespace llmk {

constexpr float kLog2E = 1.4426950408889634f;  // exp(x) = exp2(x log2 e); exp2 takes one instruction less

// Return the maximum that scores are compared with, or 0 before the first key, because -inf - -inf is NaN.
__device__ __forceinline__ float finite_max_or_zero(float maximum) { return maximum == -INFINITY ? 0.0f : maximum; }

// Return the factor that normalizes a sum of weights: 0 for a query that sees no key, so that its output is zeros.
__device__ __forceinline__ float reciprocal_or_zero(float sum) { return sum > 0 ? 1 / sum : 0.0f; }

// ex2.approx.ftz.f32: return 2^x in one instruction. exp2f takes three more, to be exact for results below 2^-126,
// which do not affect a softmax. Source: PTX ISA, section "Floating Point Instructions: ex2".
__device__ __forceinline__ float ex2_approx(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

}  // namespace llmk
