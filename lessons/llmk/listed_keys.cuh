// Attention of queries that see a list of keys each, f32. Day 9 derives it.
//
// A warp owns a query. Its four groups of 8 lanes take every fourth key of the list, each with its own maximum, sum and
// weighted sum (day 6: summaries of disjoint sets of keys merge); a row of k or v is read by 8 lanes side by side.
#pragma once

#include <cuda_runtime.h>

#include <cmath>

#include "llmk/reduce.cuh"
#include "llmk/softmax.cuh"

namespace llmk {

constexpr int kGroups = 4;  // of a warp: one key each at a time

__device__ __forceinline__ float dot(float4 a, float4 b) { return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }

__device__ __forceinline__ float4 scaled_sum(float4 a, float x, float4 b, float y) {
    return make_float4(a.x * x + b.x * y, a.y * x + b.y * y, a.z * x + b.z * y, a.w * x + b.w * y);
}

// q, out: [rows, DIM]   k, v: [rows / query_len, key_len, DIM]
// Query i sees pattern.count(i) candidates, of which pattern.key(i, n) is the n-th, or -1 where that is no key.
template <int DIM, typename Pattern>
__device__ __forceinline__ void attention_over_listed_keys(const float* q, const float* k, const float* v,
                                                           const Pattern& pattern, float* out, long long rows,
                                                           int query_len, int key_len, float scale) {
    constexpr int kLanes = 32 / kGroups;
    constexpr int kChunks = DIM / 4 / kLanes;  // of 16 bytes, that a lane has of a row
    const long long id = static_cast<long long>(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32;
    if (id >= rows) return;
    const int query = static_cast<int>(id % query_len);
    const int group = threadIdx.x % 32 / kLanes, lane = threadIdx.x % kLanes;
    const long long first_key = id / query_len * key_len;
    const float4* keys = reinterpret_cast<const float4*>(k) + first_key * (DIM / 4) + lane;
    const float4* values = reinterpret_cast<const float4*>(v) + first_key * (DIM / 4) + lane;

    float4 q_row[kChunks], o[kChunks];
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
        q_row[c] = reinterpret_cast<const float4*>(q)[id * (DIM / 4) + c * kLanes + lane];
        o[c] = make_float4(0, 0, 0, 0);
    }
    float m = -INFINITY, l = 0;

    const int count = pattern.count(query);
    for (int first = 0; first < count; first += kGroups) {
        // No key: past the end of the list, or not a key that counts. All lanes go on to the shuffles.
        const int key = first + group < count ? pattern.key(query, first + group) : -1;
        float s = 0;
        if (key >= 0) {
#pragma unroll
            for (int c = 0; c < kChunks; ++c) {
                s += dot(q_row[c], keys[static_cast<long long>(key) * (DIM / 4) + c * kLanes]);
            }
        }
        s = warp_sum<kLanes>(s);
        if (key < 0) continue;
        s *= scale;
        const float new_m = fmaxf(m, s);
        const float correction = expf(m - new_m), p = expf(s - new_m);
        m = new_m;
        l = l * correction + p;
#pragma unroll
        for (int c = 0; c < kChunks; ++c) {
            o[c] = scaled_sum(o[c], correction, values[static_cast<long long>(key) * (DIM / 4) + c * kLanes], p);
        }
    }

    // Merge the groups' summaries: first pairs of groups, then pairs of pairs.
#pragma unroll
    for (int step = kLanes; step < 32; step *= 2) {
        const float other_m = __shfl_xor_sync(kAllLanes, m, step), other_l = __shfl_xor_sync(kAllLanes, l, step);
        const float new_m = fmaxf(m, other_m);
        const float base = finite_max_or_zero(new_m);
        const float mine = expf(m - base), theirs = expf(other_m - base);
        m = new_m;
        l = l * mine + other_l * theirs;
#pragma unroll
        for (int c = 0; c < kChunks; ++c) {
            const float4 other =
                make_float4(__shfl_xor_sync(kAllLanes, o[c].x, step), __shfl_xor_sync(kAllLanes, o[c].y, step),
                            __shfl_xor_sync(kAllLanes, o[c].z, step), __shfl_xor_sync(kAllLanes, o[c].w, step));
            o[c] = scaled_sum(o[c], mine, other, theirs);
        }
    }
    if (group != 0) return;
    const float inverse = reciprocal_or_zero(l);
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
        reinterpret_cast<float4*>(out)[id * (DIM / 4) + c * kLanes + lane] =
            make_float4(o[c].x * inverse, o[c].y * inverse, o[c].z * inverse, o[c].w * inverse);
    }
}

}  // namespace llmk
