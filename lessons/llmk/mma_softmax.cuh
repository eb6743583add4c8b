// Parts of the online softmax (day 6) on scores in the accumulators of mma.sync (day 12). In each of N fragments, a
// lane holds two scores of each of its two rows: s[j][2 h] and s[j][2 h + 1] are in row h (0 or 1). The other three
// lanes of its group hold the rest of the rows.
#pragma once

#include "llmk/mma.cuh"
#include "llmk/softmax.cuh"

namespace llmk {

// Return the maximum of `largest` and this lane's scores of row h.
template <int N>
__device__ __forceinline__ float row_max(const float (&s)[N][4], int h, float largest) {
#pragma unroll
    for (int j = 0; j < N; ++j) largest = fmaxf(largest, fmaxf(s[j][2 * h], s[j][2 * h + 1]));
    return largest;
}

// Set `base`, the value that scores are compared with, to `largest` if that exceeds it by more than `slack` powers of
// 2. Return the factor by which the sums so far must be multiplied.
__device__ __forceinline__ float update_running_max(float& base, float largest, float to_base_2, float slack) {
    float correction = 1;
    if ((largest - base) * to_base_2 > slack) {
        correction = ex2_approx((base - largest) * to_base_2);
        base = largest;
    }
    return correction;
}

// Replace this lane's scores of row h by the weights 2^(score * to_base_2 - base). Return their sum.
template <int N>
__device__ __forceinline__ float softmax_weights(float (&s)[N][4], int h, float to_base_2, float base) {
    float sum[2] = {};
#pragma unroll
    for (int j = 0; j < N; ++j) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
            float& score = s[j][2 * h + e];
            score = ex2_approx(score * to_base_2 - base);  // compiles to one FFMA and one MUFU.EX2
            sum[e] += score;
        }
    }
    return sum[0] + sum[1];
}

// Round the weights to T and pack them: two accumulators of 8 keys form one operand A of 16 keys.
template <typename T, int N>
__device__ __forceinline__ void pack_weights(unsigned (&weights)[N / 2][4], const float (&s)[N][4]) {
#pragma unroll
    for (int j = 0; j < N / 2; ++j) {
        weights[j][0] = pack_pair<T>(s[2 * j][0], s[2 * j][1]);
        weights[j][1] = pack_pair<T>(s[2 * j][2], s[2 * j][3]);
        weights[j][2] = pack_pair<T>(s[2 * j + 1][0], s[2 * j + 1][1]);
        weights[j][3] = pack_pair<T>(s[2 * j + 1][2], s[2 * j + 1][3]);
    }
}

}  // namespace llmk
