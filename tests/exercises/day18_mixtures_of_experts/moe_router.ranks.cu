// Another design: no rounds. An expert's rank is the number of experts with a better logit; experts with a rank below
// top_k are written at that index. A warp routes one token and keeps its logits in shared memory.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cfloat>

#include "llmk/reduce.cuh"

constexpr int kWarps = 4;
constexpr int kMostExperts = 1024;

template <typename T>
__global__ void __launch_bounds__(32 * kWarps)
    ranks_kernel(const T* logits, float* weights, int* ids, int tokens, int experts, int top_k, bool over_all) {
    __shared__ float all[kWarps][kMostExperts];
    const int lane = threadIdx.x % 32;
    const long long token = static_cast<long long>(blockIdx.x) * kWarps + threadIdx.x / 32;
    float* own = all[threadIdx.x / 32];
    if (token >= tokens) return;

    float maximum = -FLT_MAX;
    for (int e = lane; e < experts; e += 32) {
        own[e] = static_cast<float>(logits[token * experts + e]);
        maximum = fmaxf(maximum, own[e]);
    }
    maximum = llmk::warp_max(maximum);
    __syncwarp();

    float sum = 0.0f;
    auto rank_of = [&](int e) {
        int rank = 0;
        for (int other = 0; other < experts; ++other) {
            rank += own[other] > own[e] || (own[other] == own[e] && other < e);
        }
        return rank;
    };
    for (int e = lane; e < experts; e += 32) {
        if (over_all || rank_of(e) < top_k) sum += expf(own[e] - maximum);
    }
    sum = llmk::warp_sum(sum);
    for (int e = lane; e < experts; e += 32) {
        const int rank = rank_of(e);
        if (rank >= top_k) continue;
        weights[token * top_k + rank] = expf(own[e] - maximum) / sum;
        ids[token * top_k + rank] = e;
    }
}

template <typename T>
void moe_router(const T* logits, float* weights, int* ids, int tokens, int experts, int top_k, bool softmax_first,
                bool normalize, cudaStream_t stream) {
    if (tokens == 0 || top_k == 0) return;
    ranks_kernel<<<(tokens + kWarps - 1) / kWarps, 32 * kWarps, 0, stream>>>(logits, weights, ids, tokens, experts,
                                                                             top_k, softmax_first && !normalize);
}
