// Paged attention, decode, for long contexts: blocks process parts of the keys, and a second kernel combines them.
//
//   q, out: [batch, heads, head_dim]     k_cache, v_cache: [pages, kv_heads, page_size, head_dim]     lengths: [batch]
//   block_tables: [batch, max_pages], where key i of sequence b is in page block_tables[b, i / page_size]
//   partial_out: [batch, heads, splits, head_dim]     partial_stats: [batch, heads, splits, 2], both scratch memory
//
// This is day 7's kernel, with keys in pages. A block owns a part of the keys of one key/value head and all query heads
// of its group (up to 8). A *team* of 8 or 16 lanes holds a row, 16 bytes per lane, and processes 4 keys per step.
// Every thread copies its own data to a queue in shared memory, two steps ahead. It looks up the page of a key one step
// earlier, so no copy waits for the table.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <cmath>

#include "llmk/decode.cuh"

template <typename T, int kTeam, int kHeads>
__global__ void __launch_bounds__(llmk::Decoder<T, kTeam, kHeads>::kThreads, kHeads <= 4 ? 4 : 2)
    decode(const T* __restrict__ q, const T* __restrict__ k, const T* __restrict__ v,
           const int* __restrict__ block_tables, const int* __restrict__ lengths, T* __restrict__ out,
           float* __restrict__ partial_out, float2* __restrict__ partial_stats, int heads, int kv_heads, int head_dim,
           int page_size, int max_pages, int splits, float scale) {
    using Decoder = llmk::Decoder<T, kTeam, kHeads>;
    constexpr int kKeys = Decoder::kKeys, kTeams = Decoder::kTeams, kThreads = Decoder::kThreads;
    extern __shared__ uint4 shared[];
    const int group = heads / kv_heads, chunks = (group + kHeads - 1) / kHeads;
    const int split = blockIdx.x % splits, chunk = blockIdx.x / splits % chunks;
    const int kv_head = blockIdx.x / splits / chunks % kv_heads, sequence = blockIdx.x / splits / chunks / kv_heads;
    const int head_count = min(kHeads, group - chunk * kHeads);
    const long long first_head = static_cast<long long>(sequence) * heads + kv_head * group + chunk * kHeads;

    const int length = lengths[sequence], part = llmk::keys_per_part(length, splits);
    const long long begin = static_cast<long long>(split) * part;
    const int end = static_cast<int>(min(begin + part, static_cast<long long>(length)));
    if (begin >= end && splits > 1) return;  // an empty part, which the combining kernel skips
    const int first = static_cast<int>(begin);

    Decoder decoder(q + first_head * head_dim, head_count, head_dim, scale);
    const int column = decoder.column, team = decoder.team;
    const bool inside = column < head_dim;

    // key >> shift is the index of its page in the table, because page_size is a power of 2.
    const int shift = __ffs(page_size) - 1;
    const int* table = block_tables + static_cast<size_t>(sequence) * max_pages;
    const size_t row_offset = static_cast<size_t>(kv_head) * page_size;  // first row of this head in a page
    int next_key = first + team;                                         // the first key of the next fetch
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
    decoder.process_keys(shared, first, end, fetch);
    llmk::griddepcontrol_launch_dependents();
    decoder.finish(shared, head_count, head_dim, [&](int h, int d, float sum, float block_m, float block_l) {
        if (splits == 1) {
            out[(first_head + h) * head_dim + d] = static_cast<T>(block_l > 0 ? sum / block_l : 0.0f);
        } else {
            const long long place = (first_head + h) * splits + split;
            partial_out[place * head_dim + d] = sum;
            if (d == 0) partial_stats[place] = make_float2(block_m, block_l);
        }
    });
}

// Combine the parts of each query head, as in day 7. The inputs have no __restrict__, because the compiler could then
// read the parts before griddepcontrol_wait, when they are not complete.
template <typename T>
__global__ void __launch_bounds__(llmk::kCombineThreads, 1)
    combine(const float* partial_out, const float2* partial_stats, const int* lengths, T* __restrict__ out, int heads,
            int head_dim, int splits) {
    const long long head = blockIdx.x;
    const int length = lengths[blockIdx.x / heads];
    const int part = llmk::keys_per_part(length, splits);
    const int parts = (length + part - 1) / part;
    llmk::griddepcontrol_wait();
    llmk::combine_parts(partial_out + head * splits * head_dim, partial_stats + head * splits, parts,
                        out + head * head_dim, head_dim);
}

template <typename T, int kTeam, int kHeads>
void launch_decode(const T* q, const T* k, const T* v, const int* block_tables, const int* lengths, T* out,
                   float* partial_out, float2* partial_stats, int batch, int heads, int kv_heads, int head_dim,
                   int page_size, int max_pages, int splits, float scale, cudaStream_t stream) {
    const auto kernel = decode<T, kTeam, kHeads>;
    const int bytes = llmk::Decoder<T, kTeam, kHeads>::kBytes;
    const int chunks = (heads / kv_heads + kHeads - 1) / kHeads;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    kernel<<<batch * kv_heads * chunks * splits, llmk::Decoder<T, kTeam, kHeads>::kThreads, bytes, stream>>>(
        q, k, v, block_tables, lengths, out, partial_out, partial_stats, heads, kv_heads, head_dim, page_size,
        max_pages, splits, scale);
}

template <typename T>
void paged_attention_split(const T* q, const T* k_cache, const T* v_cache, const int* block_tables, const int* lengths,
                           T* out, float* partial_out, float* partial_stats, int batch, int heads, int kv_heads,
                           int head_dim, int page_size, int max_pages, int splits, float scale, cudaStream_t stream) {
    if (batch == 0 || heads == 0 || head_dim == 0) return;
    const bool narrow = head_dim <= 64, few = heads / kv_heads <= 4;
    const auto launch = narrow ? few ? launch_decode<T, 8, 4> : launch_decode<T, 8, 8>
                        : few  ? launch_decode<T, 16, 4>
                               : launch_decode<T, 16, 8>;
    float2* stats = reinterpret_cast<float2*>(partial_stats);
    launch(q, k_cache, v_cache, block_tables, lengths, out, partial_out, stats, batch, heads, kv_heads, head_dim,
           page_size, max_pages, splits, scale, stream);
    if (splits > 1) {
        llmk::launch_dependent(combine<T>, batch * heads, llmk::kCombineThreads, stream, partial_out, stats, lengths,
                               out, heads, head_dim, splits);
    }
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
