// Pieces of the online softmax (day 6) on scores that lie in accumulators of mma.sync (day 9): a lane holds elements 2 h and
// 2 h + 1 of N fragments of row h, and the other lanes of its four the rest.
#pragma once

#include "llmk/mma.cuh"
#include "llmk/softmax.cuh"

namespace llmk {

// The largest of this lane's scores of row h, and of `largest`.
template <int N>
__device__ __forceinline__ float row_max(const float (&s)[N][4], int h, float largest) {
#pragma unroll
    for (int j = 0; j < N; ++j) largest = fmaxf(largest, fmaxf(s[j][2 * h], s[j][2 * h + 1]));
    return largest;
}

// What scores are compared with, `base`, becomes the largest one if that is larger by more than `slack` powers of 2. Returns the
// factor that sums made so far need.
__device__ __forceinline__ float update_running_max(float& base, float largest, float to_base_2, float slack) {
    float correction = 1;
    if ((largest - base) * to_base_2 > slack) {
        correction = ex2_approx((base - largest) * to_base_2);
        base = largest;
    }
    return correction;
}

// This lane's scores of row h become weights, 2^(score * to_base_2 - base). Returns their sum.
template <int N>
__device__ __forceinline__ float softmax_weights(float (&s)[N][4], int h, float to_base_2, float base) {
    float sum[2] = {};
#pragma unroll
    for (int j = 0; j < N; ++j) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
            float& score = s[j][2 * h + e];
            score = ex2_approx(score * to_base_2 - base);  // one fused multiply-add
            sum[e] += score;
        }
    }
    return sum[0] + sum[1];
}

// The weights, rounded: two fragments of 8 keys make an operand A of 16.
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
