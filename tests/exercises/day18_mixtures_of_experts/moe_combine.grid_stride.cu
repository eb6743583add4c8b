// Another design: a grid-stride loop over all vectors of the output.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "llmk/vector.cuh"

constexpr int kThreads = 256;
constexpr int kMostBlocks = 1024;

template <typename T>
__global__ void stride_kernel(const T* y, const int* rows_of, const float* weights, const T* base, T* out,
                              long long vectors, int top_k, int per_row, bool has_base) {
    constexpr int kWidth = 16 / sizeof(T);
    const auto* rows = reinterpret_cast<const llmk::Vector<T>*>(y);
    for (long long i = blockIdx.x * kThreads + threadIdx.x; i < vectors;
         i += static_cast<long long>(gridDim.x) * kThreads) {
        const long long token = i / per_row;
        float sum[kWidth] = {};
        if (has_base) {
            const llmk::Vector<T> vector = reinterpret_cast<const llmk::Vector<T>*>(base)[i];
            for (int e = 0; e < kWidth; ++e) sum[e] = vector.get(e);
        }
        for (int j = 0; j < top_k; ++j) {
            const long long row = rows_of[token * top_k + j];
            if (row < 0) continue;
            const llmk::Vector<T> vector = rows[row * per_row + i % per_row];
            const float weight = weights[token * top_k + j];
            for (int e = 0; e < kWidth; ++e) {
                sum[e] = fmaf(weight, vector.get(e), sum[e]);
            }
        }
        llmk::Vector<T> result;
        for (int e = 0; e < kWidth; ++e) result.set(e, sum[e]);
        reinterpret_cast<llmk::Vector<T>*>(out)[i] = result;
    }
}

template <typename T>
void moe_combine(const T* y, const int* rows_of, const float* weights, const T* base, T* out, int tokens, int top_k,
                 int hidden, bool has_base, cudaStream_t stream) {
    const int per_row = hidden * static_cast<int>(sizeof(T)) / 16;
    const long long vectors = static_cast<long long>(tokens) * per_row;
    if (vectors == 0) return;
    const long long blocks = (vectors + kThreads - 1) / kThreads;
    stride_kernel<<<static_cast<int>(blocks < kMostBlocks ? blocks : kMostBlocks), kThreads, 0, stream>>>(
        y, rows_of, weights, base, out, vectors, top_k, per_row, has_base);
}
