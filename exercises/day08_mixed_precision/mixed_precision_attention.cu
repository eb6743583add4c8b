// Attention in mixed precision: f16 or bf16 in and out, tensor cores through WMMA, accumulators and softmax in f32.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mma.h>

#include <cmath>

namespace wmma = nvcuda::wmma;

// TODO: a kernel, template <typename T>, whose warps multiply S = Q K^T and O += P V with wmma::mma_sync, and keep the
// maximum and the sum of each row in f32.

template <typename T>
void mixed_precision_attention(const T* q, const T* k, const T* v, T* out, int batch, int heads, int query_len,
                               int key_len, int head_dim, float scale, bool causal, cudaStream_t stream) {
    if (batch == 0 || heads == 0 || query_len == 0) return;
    // TODO: launch one block for each tile of queries of each head.
}

// q, out: [batch, heads, query_len, head_dim]     k, v: [batch, heads, key_len, head_dim]
extern "C" void mixed_precision_attention_f16(const __half* q, const __half* k, const __half* v, __half* out, int batch,
                                              int heads, int query_len, int key_len, int head_dim, float scale,
                                              bool causal, cudaStream_t stream) {
    mixed_precision_attention(q, k, v, out, batch, heads, query_len, key_len, head_dim, scale, causal, stream);
}

extern "C" void mixed_precision_attention_bf16(const __nv_bfloat16* q, const __nv_bfloat16* k, const __nv_bfloat16* v,
                                               __nv_bfloat16* out, int batch, int heads, int query_len, int key_len,
                                               int head_dim, float scale, bool causal, cudaStream_t stream) {
    mixed_precision_attention(q, k, v, out, batch, heads, query_len, key_len, head_dim, scale, causal, stream);
}
