// Attention on tensor cores with mma.sync, f16 or bf16, for several sequences, concatenated without padding.
//
//   q: [queries, heads, head_dim]     k, v: [keys, kv_heads, head_dim]     out: [queries, heads, head_dim]
//   The heads of a token are contiguous. From token to token, q has a stride of q_stride elements, k and v of
//   kv_stride, and out of heads * head_dim. Sequence b has queries query_starts[b] ... query_starts[b + 1] - 1, and
//   keys likewise.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <type_traits>

#include "llmk/async_copy.cuh"
#include "llmk/mma.cuh"
#include "llmk/reduce.cuh"
#include "llmk/softmax.cuh"
#include "llmk/swizzle.cuh"

// TODO: a kernel, template <typename T, int HEAD_DIM>, in which a warp handles 16 rows or a multiple of 16:
// TODO:   - S = Q K^T for a tile of keys, with ldmatrix and mma.sync
// TODO:   - the online softmax on S in registers: a row of an accumulator lies in four neighboring lanes
// TODO:   - the rounded weights are operand A of the matmul with V
// TODO:   - meanwhile, cp.async copies the next tiles

template <typename T, int HEAD_DIM>
void launch(const T* q, const T* k, const T* v, const int* query_starts, const int* key_starts, T* out, int batch,
            int max_queries, int heads, int kv_heads, long long q_stride, long long kv_stride, float scale, bool causal,
            cudaStream_t stream) {
    // TODO: launch it, for up to max_queries queries of each sequence.
}

template <typename T>
void mma_flash_attention(const T* q, const T* k, const T* v, const int* query_starts, const int* key_starts, T* out,
                         int batch, int max_queries, int heads, int kv_heads, int head_dim, long long q_stride,
                         long long kv_stride, float scale, bool causal, cudaStream_t stream) {
    if (batch == 0 || max_queries == 0 || heads == 0) return;
    const auto launch_for = head_dim == 4     ? launch<T, 4>
                            : head_dim == 8   ? launch<T, 8>
                            : head_dim == 64  ? launch<T, 64>
                            : head_dim == 80  ? launch<T, 80>
                            : head_dim == 96  ? launch<T, 96>
                            : head_dim == 128 ? launch<T, 128>
                                              : launch<T, 256>;
    launch_for(q, k, v, query_starts, key_starts, out, batch, max_queries, heads, kv_heads, q_stride, kv_stride, scale,
               causal, stream);
}

extern "C" void mma_flash_attention_f16(const __half* q, const __half* k, const __half* v, const int* query_starts,
                                        const int* key_starts, __half* out, int batch, int max_queries, int heads,
                                        int kv_heads, int head_dim, long long q_stride, long long kv_stride,
                                        float scale, bool causal, cudaStream_t stream) {
    mma_flash_attention(q, k, v, query_starts, key_starts, out, batch, max_queries, heads, kv_heads, head_dim, q_stride,
                        kv_stride, scale, causal, stream);
}

extern "C" void mma_flash_attention_bf16(const __nv_bfloat16* q, const __nv_bfloat16* k, const __nv_bfloat16* v,
                                         const int* query_starts, const int* key_starts, __nv_bfloat16* out, int batch,
                                         int max_queries, int heads, int kv_heads, int head_dim, long long q_stride,
                                         long long kv_stride, float scale, bool causal, cudaStream_t stream) {
    mma_flash_attention(q, k, v, query_starts, key_starts, out, batch, max_queries, heads, kv_heads, head_dim, q_stride,
                        kv_stride, scale, causal, stream);
}
