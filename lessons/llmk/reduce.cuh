// Reductions: one result of what many threads hold. Day 2 derives those of warps and blocks, day 7 warp_sum_each.
#pragma once

#include <cuda_runtime.h>

namespace llmk {

constexpr unsigned kAllLanes = 0xffffffffu;

// Every lane gets the sum over its group of kLanes neighboring lanes, a power of two.
template <int kLanes = 32>
__device__ __forceinline__ float warp_sum(float mine) {
#pragma unroll
    for (int distance = kLanes / 2; distance > 0; distance /= 2) {
        mine += __shfl_xor_sync(kAllLanes, mine, distance);
    }
    return mine;
}

// Every lane gets the largest number of its group.
template <int kLanes = 32>
__device__ __forceinline__ float warp_max(float mine) {
#pragma unroll
    for (int distance = kLanes / 2; distance > 0; distance /= 2) {
        mine = fmaxf(mine, __shfl_xor_sync(kAllLanes, mine, distance));
    }
    return mine;
}

// Every thread of the block, of whole warps, gets the sum of all. Call it once in a kernel, or with a barrier in between:
// a second call would write to `partial` while slow warps still read what the first one left there.
__device__ __forceinline__ float block_sum(float mine) {
    __shared__ float partial[32];
    const int lane = threadIdx.x % 32;
    mine = warp_sum(mine);
    if (lane == 0) partial[threadIdx.x / 32] = mine;
    __syncthreads();
    return warp_sum(lane < blockDim.x / 32 ? partial[lane] : 0.0f);
}

// Sums each of kCount numbers over 2 * kReach lanes. Two halves of them exchange what the other is to own: each adds up
// half of the numbers, then quarters do, ... 16 numbers over 16 lanes take 15 exchanges, and not 16 times 4. At the end
// lane i owns the numbers from i * kCount / (2 * kReach) on, in s[0], s[1], ...
template <int kReach, int kCount>
__device__ __forceinline__ void warp_sum_each(float* s, int lane) {
    if constexpr (kReach > 0 && kCount > 1) {
        const bool upper = (lane & kReach) != 0;
#pragma unroll
        for (int n = 0; n < kCount / 2; ++n) {
            const float keep = upper ? s[n + kCount / 2] : s[n];
            const float give = upper ? s[n] : s[n + kCount / 2];
            s[n] = keep + __shfl_xor_sync(kAllLanes, give, kReach);
        }
        warp_sum_each<kReach / 2, kCount / 2>(s, lane);
    } else if constexpr (kReach > 0) {
        s[0] += __shfl_xor_sync(kAllLanes, s[0], kReach);
        warp_sum_each<kReach / 2, 1>(s, lane);
    }
}

}  // namespace llmk
