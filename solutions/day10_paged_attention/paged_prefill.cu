// Paged attention, prefill: the new queries of several sequences, one after another, attend to a paged KV cache.
//
//   q, out: [tokens, heads, head_dim], sequence b has the queries query_starts[b] ... query_starts[b + 1] - 1
//   k_cache, v_cache: [pages, kv_heads, page_size, head_dim]     lengths: [batch], keys of each sequence
//   block_tables: [batch, max_pages], where key i of sequence b is in page block_tables[b, i / page_size]
//
// This is day 7's kernel with other addresses. Row r of key/value head g is query r / group of head g * group + r %
// group, and a block of 128 threads walks over the keys once for 64 such rows. Only the addresses differ: queries are
// found through query_starts, keys through the block table. Thread (ty, tx) computes rows 4 ty ... 4 ty + 3: the scores
// of keys tx, tx + 8, tx + 16 and tx + 24, and columns 4 tx ... 4 tx + 3 of every 32 columns of the output.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>

#include "llmk/prefill.cuh"

template <typename T, int DIM>
__global__ void __launch_bounds__(llmk::PrefillShape<DIM>::kThreads, 2)
    attend(const T* __restrict__ q, const T* __restrict__ k, const T* __restrict__ v,
           const int* __restrict__ block_tables, const int* __restrict__ lengths, const int* __restrict__ query_starts,
           T* __restrict__ out, int heads, int kv_heads, int head_dim, int page_size, int max_pages, float scale) {
    constexpr int kRows = llmk::PrefillShape<DIM>::kRows;
    extern __shared__ float4 shared[];
    const int group = heads / kv_heads;
    const int kv_head = blockIdx.y % kv_heads, sequence = blockIdx.y / kv_heads;
    const int first_query = query_starts[sequence], query_len = query_starts[sequence + 1] - first_query;
    const int key_len = lengths[sequence];
    const long long rows = static_cast<long long>(query_len) * group;
    // The last rows see the most keys, so they start first.
    const long long first_row = static_cast<long long>(gridDim.x - 1 - blockIdx.x) * kRows;
    if (first_row >= rows) return;
    const int* table = block_tables + static_cast<size_t>(sequence) * max_pages;
    const int shift = __ffs(page_size) - 1;  // key >> shift is the index of its page in the table

    // Return the offset of a row in q and out, or of a key in the cache, in elements.
    auto place = [&](long long row) {
        return ((first_query + row / group) * heads + kv_head * group + row % group) * head_dim;
    };
    auto key_place = [&](int key) {
        const size_t page = table[key >> shift];
        return ((page * kv_heads + kv_head) * page_size + (key & (page_size - 1))) * head_dim;
    };
    // Return the number of keys that a row sees: keys 0 ... query + key_len - query_len.
    auto visible = [&](long long row) { return row / group + key_len - query_len + 1; };
    llmk::prefill_attention_rows<T, DIM>(shared, q, k, v, out, first_row, rows, head_dim, scale, place, key_place,
                                         visible);
}

template <typename T, int DIM>
void launch_attend(const T* q, const T* k_cache, const T* v_cache, const int* block_tables, const int* lengths,
                   const int* query_starts, T* out, int batch, int heads, int kv_heads, int head_dim, int page_size,
                   int max_pages, int max_queries, float scale, cudaStream_t stream) {
    using S = llmk::PrefillShape<DIM>;
    const long long rows = static_cast<long long>(max_queries) * (heads / kv_heads);
    const dim3 grid(static_cast<unsigned>((rows + S::kRows - 1) / S::kRows), batch * kv_heads);
    cudaFuncSetAttribute(attend<T, DIM>, cudaFuncAttributeMaxDynamicSharedMemorySize, S::kSharedBytes);
    attend<T, DIM><<<grid, S::kThreads, S::kSharedBytes, stream>>>(q, k_cache, v_cache, block_tables, lengths,
                                                                   query_starts, out, heads, kv_heads, head_dim,
                                                                   page_size, max_pages, scale);
}

template <typename T>
void paged_prefill(const T* q, const T* k_cache, const T* v_cache, const int* block_tables, const int* lengths,
                   const int* query_starts, T* out, int batch, int tokens, int heads, int kv_heads, int head_dim,
                   int page_size, int max_pages, int max_queries, float scale, cudaStream_t stream) {
    if (batch == 0 || tokens == 0 || heads == 0 || head_dim == 0) return;
    const auto launch = head_dim <= 32   ? launch_attend<T, 32>
                        : head_dim <= 64 ? launch_attend<T, 64>
                        : head_dim <= 96 ? launch_attend<T, 96>
                                         : launch_attend<T, 128>;
    launch(q, k_cache, v_cache, block_tables, lengths, query_starts, out, batch, heads, kv_heads, head_dim, page_size,
           max_pages, max_queries, scale, stream);
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
