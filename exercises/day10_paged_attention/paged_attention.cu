// Paged attention, decode: one query per sequence attends to a paged KV cache.
//
//   q, out: [batch, heads, head_dim]     k_cache, v_cache: [pages, kv_heads, page_size, head_dim]     lengths: [batch]
//   block_tables: [batch, max_pages], where key i of sequence b is in page block_tables[b, i / page_size]
//
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>

// TODO: a kernel in which a block owns one key/value head of a sequence and all query heads of its group
// TODO:   - key i is row i % page_size of page block_tables[b, i / page_size]; look it up only for i < lengths[b]
// TODO:   - read each key and value once, 16 bytes per lane; keep m, l and o of each query head in float
// TODO:   - a sequence of length 0 gives zeros

template <typename T>
void paged_attention(const T* q, const T* k_cache, const T* v_cache, const int* block_tables, const int* lengths,
                     T* out, int batch, int heads, int kv_heads, int head_dim, int page_size, int max_pages,
                     float scale, cudaStream_t stream) {
    if (batch == 0 || heads == 0 || head_dim == 0) return;
    // TODO: launch it.
}

extern "C" void paged_attention_f16(const __half* q, const __half* k_cache, const __half* v_cache,
                                    const int* block_tables, const int* lengths, __half* out, int batch, int heads,
                                    int kv_heads, int head_dim, int page_size, int max_pages, float scale,
                                    cudaStream_t stream) {
    paged_attention(q, k_cache, v_cache, block_tables, lengths, out, batch, heads, kv_heads, head_dim, page_size,
                    max_pages, scale, stream);
}

extern "C" void paged_attention_bf16(const __nv_bfloat16* q, const __nv_bfloat16* k_cache, const __nv_bfloat16* v_cache,
                                     const int* block_tables, const int* lengths, __nv_bfloat16* out, int batch,
                                     int heads, int kv_heads, int head_dim, int page_size, int max_pages, float scale,
                                     cudaStream_t stream) {
    paged_attention(q, k_cache, v_cache, block_tables, lengths, out, batch, heads, kv_heads, head_dim, page_size,
                    max_pages, scale, stream);
}
