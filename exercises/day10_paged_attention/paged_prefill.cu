// Paged attention, prefill: the new queries of several sequences, one after another, attend to a paged KV cache.
//
//   q, out: [tokens, heads, head_dim], sequence b has the queries query_starts[b] ... query_starts[b + 1] - 1
//   k_cache, v_cache: [pages, kv_heads, page_size, head_dim]     lengths: [batch], keys of each sequence
//   block_tables: [batch, max_pages], where key i of sequence b is in page block_tables[b, i / page_size]
//
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>

// TODO: a kernel in which one block owns a tile of rows of one sequence and key/value head, and walks over its keys.
// TODO:   - a row is a query of any head of the group; the queries of sequence b start at query_starts[b]
// TODO:   - key i is row i % page_size of page block_tables[b, i / page_size]
// TODO:   - the last query sees all lengths[b] keys, the query before it one key fewer, and so on; zeros if none

template <typename T>
void paged_prefill(const T* q, const T* k_cache, const T* v_cache, const int* block_tables, const int* lengths,
                   const int* query_starts, T* out, int batch, int tokens, int heads, int kv_heads, int head_dim,
                   int page_size, int max_pages, int max_queries, float scale, cudaStream_t stream) {
    if (batch == 0 || tokens == 0 || heads == 0 || head_dim == 0) return;
    // TODO: launch it, for up to max_queries queries per sequence.
}

extern "C" void paged_prefill_f16(const __half* q, const __half* k_cache, const __half* v_cache,
                                  const int* block_tables, const int* lengths, const int* query_starts, __half* out,
                                  int batch, int tokens, int heads, int kv_heads, int head_dim, int page_size,
                                  int max_pages, int max_queries, float scale, cudaStream_t stream) {
    paged_prefill(q, k_cache, v_cache, block_tables, lengths, query_starts, out, batch, tokens, heads, kv_heads,
                  head_dim, page_size, max_pages, max_queries, scale, stream);
}

extern "C" void paged_prefill_bf16(const __nv_bfloat16* q, const __nv_bfloat16* k_cache, const __nv_bfloat16* v_cache,
                                   const int* block_tables, const int* lengths, const int* query_starts,
                                   __nv_bfloat16* out, int batch, int tokens, int heads, int kv_heads, int head_dim,
                                   int page_size, int max_pages, int max_queries, float scale, cudaStream_t stream) {
    paged_prefill(q, k_cache, v_cache, block_tables, lengths, query_starts, out, batch, tokens, heads, kv_heads,
                  head_dim, page_size, max_pages, max_queries, scale, stream);
}
