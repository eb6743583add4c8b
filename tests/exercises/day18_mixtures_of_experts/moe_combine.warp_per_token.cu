// Another design: a warp combines one token. Its lanes hold the rows and weights of the token's pairs.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "llmk/vector.cuh"

constexpr int kWarps = 4;

template <typename T>
__global__ void warp_kernel(const T* y, const int* rows_of, const float* weights, const T* base, T* out, int tokens,
                            int top_k, int hidden, bool has_base) {
    constexpr int kWidth = 16 / sizeof(T);
    const int lane = threadIdx.x % 32;
    const long long token = static_cast<long long>(blockIdx.x) * kWarps + threadIdx.x / 32;
    if (token >= tokens) return;
    for (int first = 0; first < hidden; first += 32 * kWidth) {
        const int column = first + lane * kWidth;
        float sum[kWidth] = {};
        if (has_base && column < hidden) {
            const auto vector = llmk::load_vector<kWidth>(base + token * hidden + column);
            for (int i = 0; i < kWidth; ++i) sum[i] = vector.get(i);
        }
        for (int some = 0; some < top_k; some += 32) {
            const int row_of_lane = some + lane < top_k ? rows_of[token * top_k + some + lane] : -1;
            const float weight_of_lane = some + lane < top_k ? weights[token * top_k + some + lane] : 0.0f;
            for (int j = 0; j < min(32, top_k - some); ++j) {
                const long long row = __shfl_sync(0xffffffffu, row_of_lane, j);
                const float weight = __shfl_sync(0xffffffffu, weight_of_lane, j);
                if (row < 0 || column >= hidden) continue;
                const auto vector = llmk::load_vector<kWidth>(y + row * hidden + column);
                for (int i = 0; i < kWidth; ++i) sum[i] += weight * vector.get(i);
            }
        }
        llmk::Vector<T, kWidth> result;
        for (int i = 0; i < kWidth; ++i) result.set(i, sum[i]);
        if (column < hidden) llmk::store_vector<kWidth>(out + token * hidden + column, result);
    }
}

template <typename T>
void moe_combine(const T* y, const int* rows_of, const float* weights, const T* base, T* out, int tokens, int top_k,
                 int hidden, bool has_base, cudaStream_t stream) {
    if (tokens == 0 || hidden == 0) return;
    warp_kernel<<<(tokens + kWarps - 1) / kWarps, 32 * kWarps, 0, stream>>>(y, rows_of, weights, base, out, tokens,
                                                                            top_k, hidden, has_base);
}
