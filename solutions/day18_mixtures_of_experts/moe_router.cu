// The router of a mixture of experts, for f32, f16 and bf16: the top_k largest logits of each token, and their weights.
//
//   logits: [tokens, experts]     weights, ids: [tokens, top_k]
//
// A warp handles one token, and its lanes keep the logits in registers: they are read once. Each round takes the
// largest one left. exp(logit - maximum) of the chosen ones needs only a divisor: the sum over all experts, or over the
// chosen.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <climits>
#include <cmath>

#include "llmk/reduce.cuh"

constexpr int kWarps = 4;  // tokens per block

// Return a word that is larger for a larger number, and never 0. Adding 0 turns -0 into +0.
__device__ __forceinline__ unsigned order_of(float value) {
    const unsigned bits = __float_as_uint(value + 0.0f);
    return bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
}

__device__ __forceinline__ float value_of(unsigned order) {
    return __uint_as_float(order >> 31 != 0 ? order & 0x7fffffffu : ~order);
}

// Route one token per warp. kEach: logits per lane; lane i holds the logits of experts i, i + 32, ...
template <int kEach, typename T>
__global__ void __launch_bounds__(32 * kWarps)
    router_kernel(const T* __restrict__ logits, float* __restrict__ weights, int* __restrict__ ids, int tokens,
                  int experts, int top_k, bool over_all) {
    const int lane = threadIdx.x % 32;
    const long long token = static_cast<long long>(blockIdx.x) * kWarps + threadIdx.x / 32;
    if (token >= tokens) return;

    unsigned order[kEach];  // 0 if the expert does not exist or is already chosen
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
        const int expert = lane + 32 * j;
        order[j] = expert < experts ? order_of(static_cast<float>(logits[token * experts + expert])) : 0;
    }

    float maximum = 0.0f, sum_of_all = 0.0f, sum_of_chosen = 0.0f;
    float own_weight = 0.0f;  // lane i keeps the expert chosen in round i
    int own_id = 0;
    for (int round = 0; round < top_k; ++round) {
        unsigned best = 0;
#pragma unroll
        for (int j = 0; j < kEach; ++j) best = max(best, order[j]);
        best = __reduce_max_sync(llmk::kAllLanes, best);
        int id = INT_MAX;
#pragma unroll
        for (int j = kEach - 1; j >= 0; --j) {
            if (order[j] == best) id = lane + 32 * j;
        }
        id = __reduce_min_sync(llmk::kAllLanes, id);  // among equal logits the lowest expert
        if (round == 0) {
            maximum = value_of(best);
            if (over_all) {
                float sum = 0.0f;
#pragma unroll
                for (int j = 0; j < kEach; ++j) {
                    if (order[j] != 0) sum += __expf(value_of(order[j]) - maximum);
                }
                sum_of_all = llmk::warp_sum(sum);
            }
        }
        const float weight = __expf(value_of(best) - maximum);
        sum_of_chosen += weight;
        if (lane == round) {
            own_weight = weight;
            own_id = id;
        }
#pragma unroll
        for (int j = 0; j < kEach; ++j) {
            if (id == lane + 32 * j) order[j] = 0;
        }
    }
    if (lane < top_k) {
        weights[token * top_k + lane] = own_weight / (over_all ? sum_of_all : sum_of_chosen);
        ids[token * top_k + lane] = own_id;
    }
}

template <typename T>
void moe_router(const T* logits, float* weights, int* ids, int tokens, int experts, int top_k, bool softmax_first,
                bool normalize, cudaStream_t stream) {
    if (tokens == 0 || top_k == 0) return;
    const bool over_all = softmax_first && !normalize;  // with normalize, the sum over all experts cancels
    const int blocks = (tokens - 1) / kWarps + 1;
    const auto kernel = experts <= 64    ? router_kernel<2, T>
                        : experts <= 256 ? router_kernel<8, T>
                                         : router_kernel<32, T>;
    kernel<<<blocks, 32 * kWarps, 0, stream>>>(logits, weights, ids, tokens, experts, top_k, over_all);
}

extern "C" void moe_router_f32(const float* logits, float* weights, int* ids, int tokens, int experts, int top_k,
                               bool softmax_first, bool normalize, cudaStream_t stream) {
    moe_router(logits, weights, ids, tokens, experts, top_k, softmax_first, normalize, stream);
}

extern "C" void moe_router_f16(const __half* logits, float* weights, int* ids, int tokens, int experts, int top_k,
                               bool softmax_first, bool normalize, cudaStream_t stream) {
    moe_router(logits, weights, ids, tokens, experts, top_k, softmax_first, normalize, stream);
}

extern "C" void moe_router_bf16(const __nv_bfloat16* logits, float* weights, int* ids, int tokens, int experts,
                                int top_k, bool softmax_first, bool normalize, cudaStream_t stream) {
    moe_router(logits, weights, ids, tokens, experts, top_k, softmax_first, normalize, stream);
}
