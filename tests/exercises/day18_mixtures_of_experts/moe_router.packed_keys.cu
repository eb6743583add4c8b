// Another design: a block of 128 threads routes one token. A 64-bit key holds logit and expert. Each round takes the
// largest key below the previous one, so chosen experts need not be removed.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

constexpr int kThreads = 128;
constexpr int kMostExperts = 1024;
constexpr int kMostChosen = 32;
using Key = unsigned long long;

__device__ Key key_of(float value, int expert) {
    const unsigned bits = __float_as_uint(value + 0.0f);
    const unsigned order = bits >> 31 != 0 ? ~bits : bits | 0x80000000u;
    return static_cast<Key>(order) << 32 | (0xffffffffu - static_cast<unsigned>(expert));
}

__device__ float value_of(Key key) {
    const unsigned order = static_cast<unsigned>(key >> 32);
    return __uint_as_float(order >> 31 != 0 ? order & 0x7fffffffu : ~order);
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    keys_kernel(const T* logits, float* weights, int* ids, int experts, int top_k, bool over_all) {
    __shared__ Key keys[kMostExperts];
    __shared__ Key of_warp[kThreads / 32];
    __shared__ Key chosen[kMostChosen];
    __shared__ float sums[kThreads];
    const long long token = blockIdx.x;
    for (int e = threadIdx.x; e < experts; e += kThreads) {
        keys[e] = key_of(static_cast<float>(logits[token * experts + e]), e);
    }
    __syncthreads();

    Key last = ~0ull;
    for (int round = 0; round < top_k; ++round) {
        Key best = 0;
        for (int e = threadIdx.x; e < experts; e += kThreads) {
            if (keys[e] < last && keys[e] > best) best = keys[e];
        }
        for (int distance = 16; distance > 0; distance /= 2) {
            const Key other = __shfl_xor_sync(0xffffffffu, best, distance);
            best = other > best ? other : best;
        }
        if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = best;
        __syncthreads();
        for (int w = 0; w < kThreads / 32; ++w) best = of_warp[w] > best ? of_warp[w] : best;
        if (threadIdx.x == 0) chosen[round] = best;
        last = best;
        __syncthreads();
    }

    const float maximum = value_of(chosen[0]);
    float sum = 0.0f;
    for (int i = threadIdx.x; i < (over_all ? experts : top_k); i += kThreads) {
        sum += expf(value_of(over_all ? keys[i] : chosen[i]) - maximum);
    }
    sums[threadIdx.x] = sum;
    for (int half = kThreads / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    __syncthreads();
    if (threadIdx.x < top_k) {
        const Key key = chosen[threadIdx.x];
        weights[token * top_k + threadIdx.x] = expf(value_of(key) - maximum) / sums[0];
        ids[token * top_k + threadIdx.x] = static_cast<int>(0xffffffffu - static_cast<unsigned>(key));
    }
}

template <typename T>
void moe_router(const T* logits, float* weights, int* ids, int tokens, int experts, int top_k, bool softmax_first,
                bool normalize, cudaStream_t stream) {
    if (tokens == 0 || top_k == 0) return;
    keys_kernel<<<tokens, kThreads, 0, stream>>>(logits, weights, ids, experts, top_k, softmax_first && !normalize);
}
