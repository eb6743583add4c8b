// Another design: no tensor cores. A warp computes four features of an expert for up to eight pairs at a time, with the
// sums in registers. Its lanes divide the columns. Each warp itself lists the pairs of its expert.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "llmk/reduce.cuh"
#include "llmk/vector.cuh"

constexpr int kWarps = 4, kFeatures = 4, kPairs = 8, kMostTokens = 64;

// List the pairs of an expert, and return their number. The whole warp must call it.
__device__ int find_pairs(const int* ids, int count, int expert, int* pairs) {
    int found = 0;
    __syncwarp();
    for (int first = 0; first < count; first += 32) {
        const int p = first + threadIdx.x % 32;
        const bool own = p < count && ids[p] == expert;
        const unsigned lanes = __ballot_sync(llmk::kAllLanes, own);
        if (own) pairs[found + __popc(lanes & ((1u << threadIdx.x % 32) - 1))] = p;
        found += __popc(lanes);
    }
    __syncwarp();
    return found;
}

// Add the products of rows of x and rows of w to sums [pairs, features]. Pair p uses row p / divisor of x.
template <typename T>
__device__ void multiply(float (&sums)[kPairs][kFeatures], const T* x, const int* pairs, int count, int divisor,
                         const T* w, int columns) {
    constexpr int kWidth = llmk::kVectorWidth<T>;
    for (int column = threadIdx.x % 32 * kWidth; column < columns; column += 32 * kWidth) {
        llmk::Vector<T> rows[kFeatures];
        for (int f = 0; f < kFeatures; ++f) {
            rows[f] = llmk::load_vector<kWidth>(w + static_cast<long long>(f) * columns + column);
        }
#pragma unroll
        for (int p = 0; p < kPairs; ++p) {
            if (p >= count) break;
            const auto vector =
                llmk::load_vector<kWidth>(x + static_cast<long long>(pairs[p] / divisor) * columns + column);
#pragma unroll
            for (int f = 0; f < kFeatures; ++f) {
                for (int i = 0; i < kWidth; ++i) sums[p][f] += vector.get(i) * rows[f].get(i);
            }
        }
    }
#pragma unroll
    for (int p = 0; p < kPairs; ++p) {
        if (p >= count) break;
#pragma unroll
        for (int f = 0; f < kFeatures; ++f) sums[p][f] = llmk::warp_sum(sums[p][f]);
    }
}

template <typename T>
__global__ void first_kernel(const T* x, const int* ids, const T* gate_up, T* middle, int tokens, int top_k, int hidden,
                             int inter) {
    __shared__ int all_pairs[kWarps][kMostTokens];
    int* pairs = all_pairs[threadIdx.x / 32];
    const int feature = (blockIdx.x * kWarps + threadIdx.x / 32) * kFeatures, expert = blockIdx.y;
    const int found = find_pairs(ids, tokens * top_k, expert, pairs);
    if (feature >= inter) return;
    const T* gate = gate_up + (2LL * expert * inter + feature) * hidden;
    for (int some = 0; some < found; some += kPairs) {
        float gates[kPairs][kFeatures] = {}, ups[kPairs][kFeatures] = {};
        multiply(gates, x, pairs + some, found - some, top_k, gate, hidden);
        multiply(ups, x, pairs + some, found - some, top_k, gate + static_cast<long long>(inter) * hidden, hidden);
        if (threadIdx.x % 32 != 0) continue;
#pragma unroll
        for (int p = 0; p < kPairs; ++p) {
            if (some + p >= found) break;
#pragma unroll
            for (int f = 0; f < kFeatures; ++f) {
                const float g = gates[p][f];
                middle[static_cast<long long>(pairs[some + p]) * inter + feature + f] =
                    static_cast<T>(g / (1.0f + expf(-g)) * ups[p][f]);
            }
        }
    }
}

template <typename T>
__global__ void second_kernel(const T* middle, const int* ids, const float* weights, const T* down, T* out, int tokens,
                              int experts, int top_k, int hidden, int inter) {
    __shared__ int all_pairs[kWarps][kMostTokens];
    __shared__ float tables[kWarps][kMostTokens][kFeatures];
    int* pairs = all_pairs[threadIdx.x / 32];
    auto* table = tables[threadIdx.x / 32];
    const int feature = (blockIdx.x * kWarps + threadIdx.x / 32) * kFeatures, lane = threadIdx.x % 32;
    if (feature >= hidden) return;
    for (int i = lane; i < tokens * kFeatures; i += 32) table[i / kFeatures][i % kFeatures] = 0.0f;
    for (int expert = 0; expert < experts; ++expert) {
        const int found = find_pairs(ids, tokens * top_k, expert, pairs);
        const T* rows = down + (static_cast<long long>(expert) * hidden + feature) * inter;
        for (int some = 0; some < found; some += kPairs) {
            float sums[kPairs][kFeatures] = {};
            multiply(sums, middle, pairs + some, found - some, 1, rows, inter);
            if (lane != 0) continue;
#pragma unroll
            for (int p = 0; p < kPairs; ++p) {
                if (some + p >= found) break;
                const int pair = pairs[some + p];
#pragma unroll
                for (int f = 0; f < kFeatures; ++f) table[pair / top_k][f] += weights[pair] * sums[p][f];
            }
        }
    }
    __syncwarp();
    for (int i = lane; i < tokens * kFeatures; i += 32) {
        out[static_cast<long long>(i / kFeatures) * hidden + feature + i % kFeatures] =
            static_cast<T>(table[i / kFeatures][i % kFeatures]);
    }
}

template <typename T>
void moe_decode(const T* x, const int* ids, const float* weights, const T* gate_up, const T* down, T* middle, T* out,
                int tokens, int experts, int top_k, int hidden, int inter, cudaStream_t stream) {
    if (tokens == 0) return;
    constexpr int kOfBlock = kWarps * kFeatures;
    first_kernel<<<dim3((inter + kOfBlock - 1) / kOfBlock, experts), 32 * kWarps, 0, stream>>>(
        x, ids, gate_up, middle, tokens, top_k, hidden, inter);
    second_kernel<<<(hidden + kOfBlock - 1) / kOfBlock, 32 * kWarps, 0, stream>>>(
        middle, ids, weights, down, out, tokens, experts, top_k, hidden, inter);
}
