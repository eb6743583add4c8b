// Paged attention, decode, for long contexts: blocks process parts of the keys, and a second kernel combines them.
//
//   q, out: [batch, heads, head_dim]     k_cache, v_cache: [pages, kv_heads, page_size, head_dim]     lengths: [batch]
//   block_tables: [batch, max_pages], where key i of sequence b is in page block_tables[b, i / page_size]
//   partial_out: [batch, heads, splits, head_dim]     partial_stats: [batch, heads, splits, 2], both scratch memory
//
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>

// TODO: a kernel in which a block owns one part of the keys of one key/value head of one sequence
// TODO:   - key i is row i % page_size of page block_tables[b, i / page_size]; look it up only for i < lengths[b]
// TODO:   - it stores the results of its part, without dividing: maximum, sum of exponentials, weighted sum

// TODO: a kernel that combines the parts of each query head; a sequence without keys gives zeros

template <typename T>
void paged_attention_split(const T* q, const T* k_cache, const T* v_cache, const int* block_tables, const int* lengths,
                           T* out, float* partial_out, float* partial_stats, int batch, int heads, int kv_heads,
                           int head_dim, int page_size, int max_pages, int splits, float scale, cudaStream_t stream) {
    if (batch == 0 || heads == 0 || head_dim == 0) return;
    // TODO: launch both.
}

extern "C" void paged_attention_split_f16(const __half* q, const __half* k_cache, const __half* v_cache,
                                          const int* block_tables, const int* lengths, __half* out, float* partial_out,
                                          float* partial_stats, int batch, int heads, int kv_heads, int head_dim,
                                          int page_size, int max_pages, int splits, float scale, cudaStream_t stream) {
    paged_attention_split(q, k_cache, v_cache, block_tables, lengths, out, partial_out, partial_stats, batch, heads,
                          kv_heads, head_dim, page_size, max_pages, splits, scale, stream);
}

extern "C" void paged_attention_split_bf16(const __nv_bfloat16* q, const __nv_bfloat16* k_cache,
                                           const __nv_bfloat16* v_cache, const int* block_tables, const int* lengths,
                                           __nv_bfloat16* out, float* partial_out, float* partial_stats, int batch,
                                           int heads, int kv_heads, int head_dim, int page_size, int max_pages,
                                           int splits, float scale, cudaStream_t stream) {
    paged_attention_split(q, k_cache, v_cache, block_tables, lengths, out, partial_out, partial_stats, batch, heads,
                          kv_heads, head_dim, page_size, max_pages, splits, scale, stream);
}
