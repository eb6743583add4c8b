// Reductions across the lanes of a warp and the threads of a block. Day 2 derives them; day 7 derives warp_sum_each.
#pragma once

#include <cuda_runtime.h>

namespace llmk {

constexpr unsigned kAllLanes = 0xffffffffu;

// Return, in every lane, the sum over its group of kLanes neighboring lanes. kLanes is a power of two.
template <int kLanes = 32>
__device__ __forceinline__ float warp_sum(float mine) {
#pragma unroll
    for (int distance = kLanes / 2; distance > 0; distance /= 2) {
        mine += __shfl_xor_sync(kAllLanes, mine, distance);
    }
    return mine;
}

// Return, in every lane, the maximum over its group of kLanes neighboring lanes.
template <int kLanes = 32>
__device__ __forceinline__ float warp_max(float mine) {
#pragma unroll
    for (int distance = kLanes / 2; distance > 0; distance /= 2) {
        mine = fmaxf(mine, __shfl_xor_sync(kAllLanes, mine, distance));
    }
    return mine;
}

// Return the sum over all threads of the block in every thread. The block consists of whole warps. Between two calls
// the block needs a barrier: otherwise the second call overwrites `partial` while slow warps still read it.
__device__ __forceinline__ float block_sum(float mine) {
    __shared__ float partial[32];
    const int lane = threadIdx.x % 32;
    mine = warp_sum(mine);
    if (lane == 0) partial[threadIdx.x / 32] = mine;
    __syncthreads();
    return warp_sum(lane < blockDim.x / 32 ? partial[lane] : 0.0f);
}

// Sum each of kCount numbers over 2 * kReach lanes by recursive halving. In each step two halves of the lanes exchange
// the numbers that the other half will own. 16 numbers over 16 lanes take 15 shuffles instead of 16 * 4. At the end
// lane i owns the sums starting at i * kCount / (2 * kReach), in s[0], s[1], ...
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
