// Combine the rows of each token's experts: out[t] = base[t] + the sum of weights[t, j] * y[rows_of[t, j]].
//
//   y: [rows, hidden]     rows_of, weights: [tokens, top_k]     base: [tokens, hidden], if has_base     out: [tokens, hidden]
//
// A gather: each token reads its rows, sums in float in the order of j, and is written once. No atomic is needed, and
// every run gives the same bits.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "llmk/vector.cuh"

constexpr int kThreads = 128;

// A block handles one token; a thread handles kWidth of its columns at a time.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    combine_kernel(const T* __restrict__ y, const int* __restrict__ rows_of, const float* __restrict__ weights,
                   const T* __restrict__ base, T* __restrict__ out, int top_k, int hidden, bool has_base) {
    constexpr int kWidth = llmk::kVectorWidth<T>;
    const long long token = blockIdx.x;
    const int* own_rows = rows_of + token * top_k;
    const float* own_weights = weights + token * top_k;
    for (int column = threadIdx.x * kWidth; column < hidden; column += kThreads * kWidth) {
        float sum[kWidth] = {};
        if (has_base) {
            const auto vector = llmk::load_vector<kWidth>(base + token * hidden + column);
#pragma unroll
            for (int i = 0; i < kWidth; ++i) sum[i] = vector.get(i);
        }
#pragma unroll 4
        for (int j = 0; j < top_k; ++j) {
            const int row = own_rows[j];
            if (row < 0) continue;  // the pair was dropped
            const float weight = own_weights[j];
            const auto vector = llmk::load_vector<kWidth>(y + static_cast<long long>(row) * hidden + column);
#pragma unroll
            for (int i = 0; i < kWidth; ++i) sum[i] += weight * vector.get(i);
        }
        llmk::Vector<T, kWidth> result;
#pragma unroll
        for (int i = 0; i < kWidth; ++i) result.set(i, sum[i]);
        llmk::store_vector<kWidth>(out + token * hidden + column, result);
    }
}

template <typename T>
void moe_combine(const T* y, const int* rows_of, const float* weights, const T* base, T* out, int tokens, int top_k,
                 int hidden, bool has_base, cudaStream_t stream) {
    if (tokens == 0 || hidden == 0) return;
    combine_kernel<<<tokens, kThreads, 0, stream>>>(y, rows_of, weights, base, out, top_k, hidden, has_base);
}

extern "C" void moe_combine_f32(const float* y, const int* rows_of, const float* weights, const float* base, float* out,
                                int tokens, int top_k, int hidden, bool has_base, cudaStream_t stream) {
    moe_combine(y, rows_of, weights, base, out, tokens, top_k, hidden, has_base, stream);
}

extern "C" void moe_combine_f16(const __half* y, const int* rows_of, const float* weights, const __half* base,
                                __half* out, int tokens, int top_k, int hidden, bool has_base, cudaStream_t stream) {
    moe_combine(y, rows_of, weights, base, out, tokens, top_k, hidden, has_base, stream);
}

extern "C" void moe_combine_bf16(const __nv_bfloat16* y, const int* rows_of, const float* weights,
                                 const __nv_bfloat16* base, __nv_bfloat16* out, int tokens, int top_k, int hidden,
                                 bool has_base, cudaStream_t stream) {
    moe_combine(y, rows_of, weights, base, out, tokens, top_k, hidden, has_base, stream);
}
