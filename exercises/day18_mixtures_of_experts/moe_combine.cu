// Combine the rows of each token's experts: out[t] = base[t] + the sum of weights[t, j] * y[rows_of[t, j]].
//
//   y: [rows, hidden]     rows_of, weights: [tokens, top_k]     base: [tokens, hidden], if has_base     out: [tokens, hidden]
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "llmk/vector.cuh"

// TODO: a kernel, template <typename T>: each token reads the rows of its pairs, 16 bytes at a time, sums in float in the
// TODO: order of j, and writes its row once.

template <typename T>
void moe_combine(const T* y, const int* rows_of, const float* weights, const T* base, T* out, int tokens, int top_k,
                 int hidden, bool has_base, cudaStream_t stream) {
    // TODO: launch it. With no tokens or hidden = 0 there is nothing to do.
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
