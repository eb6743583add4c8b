// Attention of queries that each see a list of keys, in f32. Day 9 derives it.
//
// A warp handles one query. Its four groups of 8 lanes each take every fourth key of the list and keep their own
// maximum, sum and weighted sum; day 6 shows how these merge. The 8 lanes of a group read neighboring parts of a row of
// k or v. Rows of fewer than 32 columns have a lane for each 4 columns, and the warp has more groups.
#pragma once

#include <cuda_runtime.h>

#include <cmath>

#include "llmk/reduce.cuh"
#include "llmk/softmax.cuh"

namespace llmk {

__device__ __forceinline__ float dot(float4 a, float4 b) { return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }

__device__ __forceinline__ float4 scaled_sum(float4 a, float x, float4 b, float y) {
    return make_float4(a.x * x + b.x * y, a.y * x + b.y * y, a.z * x + b.z * y, a.w * x + b.w * y);
}

// q, out: [rows, DIM]   k, v: [rows / query_len, key_len, DIM] Query i has pattern.count(i) candidates; pattern.key(i,
// n) is the n-th, or -1 if it is masked.
template <int DIM, typename Pattern>
__device__ __forceinline__ void attention_over_listed_keys(const float* q, const float* k, const float* v,
                                                           const Pattern& pattern, float* out, long long rows,
                                                           int query_len, int key_len, float scale) {
    constexpr int kLanes = DIM < 32 ? DIM / 4 : 8;  // lanes per group; a group processes one key at a time
    constexpr int kGroups = 32 / kLanes;
    constexpr int kChunks = DIM / 4 / kLanes;  // 16-byte pieces of a row per lane
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
        // -1 past the end of the list and for masked keys, so that all lanes still take part in the shuffles.
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

    // Merge the groups' results: first pairs of groups, then pairs of pairs.
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
