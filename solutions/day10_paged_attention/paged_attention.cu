// Paged attention, decode: one query per sequence attends to a paged KV cache.
//
//   q, out: [batch, heads, head_dim]     k_cache, v_cache: [pages, kv_heads, page_size, head_dim]     lengths: [batch]
//   block_tables: [batch, max_pages], where key i of sequence b is in page block_tables[b, i / page_size]
//
// A block owns one key/value head of a sequence and all query heads of its group (up to 8), and walks over the pages. A
// *team* of 8 or 16 lanes holds a row, 16 bytes per lane, and processes 4 keys per step. Every thread copies its own
// data to a queue in shared memory, two steps ahead. It looks up the page of a key one step earlier, so no copy waits
// for the table.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <cmath>

#include "llmk/decode.cuh"

template <typename T, int kTeam, int kHeads>
__global__ void __launch_bounds__(llmk::Decoder<T, kTeam, kHeads>::kThreads, kHeads <= 4 ? 4 : 2)
    decode(const T* __restrict__ q, const T* __restrict__ k, const T* __restrict__ v,
           const int* __restrict__ block_tables, const int* __restrict__ lengths, T* __restrict__ out, int heads,
           int kv_heads, int head_dim, int page_size, int max_pages, float scale) {
    using Decoder = llmk::Decoder<T, kTeam, kHeads>;
    constexpr int kKeys = Decoder::kKeys, kTeams = Decoder::kTeams, kThreads = Decoder::kThreads;
    extern __shared__ uint4 shared[];
    const int group = heads / kv_heads, chunks = (group + kHeads - 1) / kHeads;
    const int chunk = blockIdx.x % chunks, kv_head = blockIdx.x / chunks % kv_heads;
    const int sequence = blockIdx.x / chunks / kv_heads;
    const int head_count = min(kHeads, group - chunk * kHeads);
    const long long first_head = static_cast<long long>(sequence) * heads + kv_head * group + chunk * kHeads;

    const int end = lengths[sequence];

    Decoder decoder(q + first_head * head_dim, head_count, head_dim, scale);
    const int column = decoder.column, team = decoder.team;
    const bool inside = column < head_dim;

    // key >> shift is the index of its page in the table, because page_size is a power of 2.
    const int shift = __ffs(page_size) - 1;
    const int* table = block_tables + static_cast<size_t>(sequence) * max_pages;
    const size_t row_offset = static_cast<size_t>(kv_head) * page_size;  // first row of this head in a page
    int next_key = team;                                                 // the first key of the next fetch
    int page[kKeys];                                                     // the pages of the keys of the next fetch
    auto look_up = [&]() {
#pragma unroll
        for (int i = 0; i < kKeys; ++i) {
            const int key = next_key + i * kTeams;
            page[i] = key < end ? table[key >> shift] : 0;  // entries past the last key are never read
        }
    };
    auto fetch = [&](uint4* entries) {
#pragma unroll
        for (int i = 0; i < kKeys; ++i) {
            const int key = next_key + i * kTeams;
            const int missing = inside && key < end ? 0 : 16;  // bytes that are filled with zeros instead of read
            const size_t row =
                static_cast<size_t>(page[i]) * kv_heads * page_size + row_offset + (key & (page_size - 1));
            const size_t place = row * head_dim + column;
            __pipeline_memcpy_async(entries + i * kThreads, k + place, 16, missing);
            __pipeline_memcpy_async(entries + (kKeys + i) * kThreads, v + place, 16, missing);
        }
        next_key += Decoder::kStep;
        look_up();
    };

    look_up();
    decoder.process_keys(shared, 0, end, fetch);
    decoder.finish(shared, head_count, head_dim, [&](int h, int d, float sum, float block_m, float block_l) {
        // A sequence without keys gives zeros.
        out[(first_head + h) * head_dim + d] = static_cast<T>(block_l > 0 ? sum / block_l : 0.0f);
    });
}

template <typename T, int kTeam, int kHeads>
void launch_decode(const T* q, const T* k, const T* v, const int* block_tables, const int* lengths, T* out, int batch,
                   int heads, int kv_heads, int head_dim, int page_size, int max_pages, float scale,
                   cudaStream_t stream) {
    const auto kernel = decode<T, kTeam, kHeads>;
    const int bytes = llmk::Decoder<T, kTeam, kHeads>::kBytes;
    const int chunks = (heads / kv_heads + kHeads - 1) / kHeads;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    kernel<<<batch * kv_heads * chunks, llmk::Decoder<T, kTeam, kHeads>::kThreads, bytes, stream>>>(
        q, k, v, block_tables, lengths, out, heads, kv_heads, head_dim, page_size, max_pages, scale);
}

template <typename T>
void paged_attention(const T* q, const T* k_cache, const T* v_cache, const int* block_tables, const int* lengths,
                     T* out, int batch, int heads, int kv_heads, int head_dim, int page_size, int max_pages,
                     float scale, cudaStream_t stream) {
    if (batch == 0 || heads == 0 || head_dim == 0) return;
    const bool narrow = head_dim <= 64, few = heads / kv_heads <= 4;
    const auto launch = narrow ? few ? launch_decode<T, 8, 4> : launch_decode<T, 8, 8>
                        : few  ? launch_decode<T, 16, 4>
                               : launch_decode<T, 16, 8>;
    launch(q, k_cache, v_cache, block_tables, lengths, out, batch, heads, kv_heads, head_dim, page_size, max_pages,
           scale, stream);
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
