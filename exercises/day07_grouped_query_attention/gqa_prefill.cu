// Grouped-query attention, prefill: out = softmax(scale * q k^T) v, groups of query heads share a key/value head.
//
//   q, out: [batch, heads, query_len, head_dim]      k, v: [batch, kv_heads, key_len, head_dim]
//
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>

// TODO: a kernel in which one block owns a tile of rows of one key/value head, and walks over its keys in tiles.
// TODO:   - a row is a query of any head of the group: row r is query r / group of head g * group + r % group
// TODO:   - keys and values are converted to float when they are copied to shared memory; m, l and o are floats too
// TODO:   - with a causal mask, query i sees the keys up to i + key_len - query_len; a query that sees none gives zeros

template <typename T>
void gqa_prefill(const T* q, const T* k, const T* v, T* out, int batch, int heads, int kv_heads, int query_len,
                 int key_len, int head_dim, float scale, bool causal, cudaStream_t stream) {
    if (batch == 0 || heads == 0 || query_len == 0 || head_dim == 0) return;
    // TODO: launch it.
}

extern "C" void gqa_prefill_f32(const float* q, const float* k, const float* v, float* out, int batch, int heads,
                                int kv_heads, int query_len, int key_len, int head_dim, float scale, bool causal,
                                cudaStream_t stream) {
    gqa_prefill(q, k, v, out, batch, heads, kv_heads, query_len, key_len, head_dim, scale, causal, stream);
}

extern "C" void gqa_prefill_f16(const __half* q, const __half* k, const __half* v, __half* out, int batch, int heads,
                                int kv_heads, int query_len, int key_len, int head_dim, float scale, bool causal,
                                cudaStream_t stream) {
    gqa_prefill(q, k, v, out, batch, heads, kv_heads, query_len, key_len, head_dim, scale, causal, stream);
}

extern "C" void gqa_prefill_bf16(const __nv_bfloat16* q, const __nv_bfloat16* k, const __nv_bfloat16* v,
                                 __nv_bfloat16* out, int batch, int heads, int kv_heads, int query_len, int key_len,
                                 int head_dim, float scale, bool causal, cudaStream_t stream) {
    gqa_prefill(q, k, v, out, batch, heads, kv_heads, query_len, key_len, head_dim, scale, causal, stream);
}
