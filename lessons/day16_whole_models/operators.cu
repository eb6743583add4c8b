// Kernels for the models beside those of days 1 to 14: GELU, a bias, and paged attention in f32.
//
// The attention kernels are those of day 10, which take f16 and bf16. They are needed in f32 because only in f32 two
// programs choose the same tokens for certain. Only the type is new: llmk/decode.cuh and llmk/prefill.cuh do the work.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include "llmk/decode.cuh"
#include "llmk/prefill.cuh"
#include "llmk/vector.cuh"

// gelu(x) = x P(Z <= x) with a normal Z, the exact form that GPT-NeoX uses.
// x, out: [n]
template <typename T, int kWidth>
__global__ void gelu_kernel(const T* __restrict__ x, T* __restrict__ out, long long n) {
    const long long first = (static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x) * kWidth;
    if (first + kWidth <= n) {
        const auto in = llmk::load_vector<kWidth>(x + first);
        llmk::Vector<T, kWidth> result;
#pragma unroll
        for (int j = 0; j < kWidth; ++j) result.set(j, in.get(j) * normcdff(in.get(j)));
        llmk::store_vector(out + first, result);
    } else {
        for (long long i = first; i < n; ++i) {
            const float value = static_cast<float>(x[i]);
            out[i] = static_cast<T>(value * normcdff(value));
        }
    }
}

template <typename T>
void gelu(const T* x, T* out, long long n, cudaStream_t stream) {
    if (n == 0) return;
    constexpr int kThreads = 256;
    const bool vectors = llmk::rows_are_aligned(0, x, out);
    const int width = vectors ? llmk::kVectorWidth<T> : 1;
    const long long threads = (n + width - 1) / width;
    const unsigned blocks = static_cast<unsigned>((threads + kThreads - 1) / kThreads);
    const auto kernel = vectors ? gelu_kernel<T, llmk::kVectorWidth<T>> : gelu_kernel<T, 1>;
    kernel<<<blocks, kThreads, 0, stream>>>(x, out, n);
}

extern "C" void gelu_f32(const float* x, float* out, long long n, cudaStream_t stream) { gelu(x, out, n, stream); }

extern "C" void gelu_f16(const __half* x, __half* out, long long n, cudaStream_t stream) { gelu(x, out, n, stream); }

extern "C" void gelu_bf16(const __nv_bfloat16* x, __nv_bfloat16* out, long long n, cudaStream_t stream) {
    gelu(x, out, n, stream);
}

// Add a bias to each row, in place, and apply GELU if kGelu. The wgmma matmul does neither.
// x: [rows, columns]   bias: [columns]   n: rows * columns, a multiple of kWidth, as is columns
template <typename T, int kWidth, bool kGelu>
__global__ void add_bias_kernel(T* __restrict__ x, const T* __restrict__ bias, long long n, int columns) {
    const long long first = (static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x) * kWidth;
    if (first >= n) return;
    const auto in = llmk::load_vector<kWidth>(x + first);
    const auto added = llmk::load_vector<kWidth>(bias + first % columns);
    llmk::Vector<T, kWidth> result;
#pragma unroll
    for (int j = 0; j < kWidth; ++j) {
        const float sum = in.get(j) + added.get(j);
        // Faster than normcdff. Where it cancels, below x = -3, the error is about a unit in the last place of 16 bits.
        result.set(j, kGelu ? 0.5f * sum * (1.0f + erff(sum * 0.70710678f)) : sum);
    }
    llmk::store_vector(x + first, result);
}

template <typename T>
void add_bias(T* x, const T* bias, int rows, int columns, bool gelu, cudaStream_t stream) {
    const long long n = static_cast<long long>(rows) * columns;
    if (n == 0) return;
    constexpr int kThreads = 256, kWidth = llmk::kVectorWidth<T>;
    const bool vectors = columns % kWidth == 0 && llmk::rows_are_aligned(0, x, bias);
    const long long threads = vectors ? n / kWidth : n;
    const auto kernel = vectors ? (gelu ? add_bias_kernel<T, kWidth, true> : add_bias_kernel<T, kWidth, false>)
                                : (gelu ? add_bias_kernel<T, 1, true> : add_bias_kernel<T, 1, false>);
    kernel<<<static_cast<unsigned>((threads + kThreads - 1) / kThreads), kThreads, 0, stream>>>(x, bias, n, columns);
}

extern "C" void add_bias_f32(float* x, const float* bias, int rows, int columns, bool gelu, cudaStream_t stream) {
    add_bias(x, bias, rows, columns, gelu, stream);
}

extern "C" void add_bias_f16(__half* x, const __half* bias, int rows, int columns, bool gelu, cudaStream_t stream) {
    add_bias(x, bias, rows, columns, gelu, stream);
}

extern "C" void add_bias_bf16(__nv_bfloat16* x, const __nv_bfloat16* bias, int rows, int columns, bool gelu,
                              cudaStream_t stream) {
    add_bias(x, bias, rows, columns, gelu, stream);
}

// One query per sequence. A block handles a key/value head of a sequence and up to 8 query heads of its group.
//   q, out: [batch, heads, head_dim]   k, v: [pages, kv_heads, page_size, head_dim]   block_tables: [batch, max_pages]
template <int kTeam, int kHeads>
__global__ void decode(const float* __restrict__ q, const float* __restrict__ k, const float* __restrict__ v,
                       const int* __restrict__ block_tables, const int* __restrict__ lengths, float* __restrict__ out,
                       int heads, int kv_heads, int head_dim, int page_size, int max_pages, float scale) {
    using Decoder = llmk::Decoder<float, kTeam, kHeads>;
    extern __shared__ uint4 shared[];
    const int group = heads / kv_heads, chunks = (group + kHeads - 1) / kHeads;
    const int chunk = blockIdx.x % chunks, kv_head = blockIdx.x / chunks % kv_heads;
    const int sequence = blockIdx.x / chunks / kv_heads;
    const int head_count = min(kHeads, group - chunk * kHeads);
    const long long first_head = static_cast<long long>(sequence) * heads + kv_head * group + chunk * kHeads;
    const int end = lengths[sequence];
    const int* table = block_tables + static_cast<size_t>(sequence) * max_pages;

    Decoder decoder(q + first_head * head_dim, head_count, head_dim, scale);
    int next_key = decoder.team;
    auto fetch = [&](uint4* entries) {
#pragma unroll
        for (int i = 0; i < Decoder::kKeys; ++i) {
            const int key = next_key + i * Decoder::kTeams;
            const bool inside = decoder.column < head_dim && key < end;
            const size_t page = key < end ? table[key / page_size] : 0;  // entries past the last key are never read
            const size_t row = (page * kv_heads + kv_head) * page_size + key % page_size;
            const size_t place = row * head_dim + decoder.column;
            const int missing = inside ? 0 : 16;  // bytes that become zeros and are not read
            __pipeline_memcpy_async(entries + i * Decoder::kThreads, k + place, 16, missing);
            __pipeline_memcpy_async(entries + (Decoder::kKeys + i) * Decoder::kThreads, v + place, 16, missing);
        }
        next_key += Decoder::kStep;
    };
    decoder.process_keys(shared, 0, end, fetch);
    decoder.finish(shared, head_count, head_dim, [&](int h, int d, float sum, float block_m, float block_l) {
        out[(first_head + h) * head_dim + d] = block_l > 0 ? sum / block_l : 0.0f;
    });
}

template <int kTeam>
void launch_decode(const float* q, const float* k, const float* v, const int* block_tables, const int* lengths,
                   float* out, int batch, int heads, int kv_heads, int head_dim, int page_size, int max_pages,
                   float scale, cudaStream_t stream) {
    constexpr int kHeads = 8;
    using Decoder = llmk::Decoder<float, kTeam, kHeads>;
    const int chunks = (heads / kv_heads + kHeads - 1) / kHeads;
    const auto kernel = decode<kTeam, kHeads>;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Decoder::kBytes);
    kernel<<<batch * kv_heads * chunks, Decoder::kThreads, Decoder::kBytes, stream>>>(
        q, k, v, block_tables, lengths, out, heads, kv_heads, head_dim, page_size, max_pages, scale);
}

// head_dim: a multiple of 4, at most 128. Parameters as day 10's paged_attention.
extern "C" void paged_attention_f32(const float* q, const float* k_cache, const float* v_cache, const int* block_tables,
                                    const int* lengths, float* out, int batch, int heads, int kv_heads, int head_dim,
                                    int page_size, int max_pages, float scale, cudaStream_t stream) {
    if (batch == 0 || heads == 0 || head_dim == 0) return;
    const auto launch = head_dim <= 32 ? launch_decode<8> : head_dim <= 64 ? launch_decode<16> : launch_decode<32>;
    launch(q, k_cache, v_cache, block_tables, lengths, out, batch, heads, kv_heads, head_dim, page_size, max_pages,
           scale, stream);
}

// The new queries of several sequences, concatenated, against their pages; the last query of a sequence sees all keys.
//   q, out: [tokens, heads, head_dim]   query_starts: [batch + 1]   the others as above
template <int DIM>
__global__ void prefill(const float* __restrict__ q, const float* __restrict__ k, const float* __restrict__ v,
                        const int* __restrict__ block_tables, const int* __restrict__ lengths,
                        const int* __restrict__ query_starts, float* __restrict__ out, int heads, int kv_heads,
                        int head_dim, int page_size, int max_pages, float scale) {
    extern __shared__ float4 tiles[];
    const int group = heads / kv_heads;
    const int kv_head = blockIdx.y % kv_heads, sequence = blockIdx.y / kv_heads;
    const int first_query = query_starts[sequence], query_len = query_starts[sequence + 1] - first_query;
    const int key_len = lengths[sequence];
    const long long rows = static_cast<long long>(query_len) * group;
    const long long first_row = static_cast<long long>(blockIdx.x) * llmk::PrefillShape<DIM>::kRows;
    if (first_row >= rows) return;
    const int* table = block_tables + static_cast<size_t>(sequence) * max_pages;
    auto place = [&](long long row) {
        return ((first_query + row / group) * heads + kv_head * group + row % group) * head_dim;
    };
    auto key_place = [&](int key) {
        const size_t page = table[key / page_size];
        return ((page * kv_heads + kv_head) * page_size + key % page_size) * head_dim;
    };
    auto visible = [&](long long row) { return row / group + key_len - query_len + 1; };
    llmk::prefill_attention_rows<float, DIM>(tiles, q, k, v, out, first_row, rows, head_dim, scale, place, key_place,
                                             visible);
}

template <int DIM>
void launch_prefill(const float* q, const float* k, const float* v, const int* block_tables, const int* lengths,
                    const int* query_starts, float* out, int batch, int heads, int kv_heads, int head_dim,
                    int page_size, int max_pages, int max_queries, float scale, cudaStream_t stream) {
    using S = llmk::PrefillShape<DIM>;
    const long long rows = static_cast<long long>(max_queries) * (heads / kv_heads);
    const dim3 grid(static_cast<unsigned>((rows + S::kRows - 1) / S::kRows), batch * kv_heads);
    cudaFuncSetAttribute(prefill<DIM>, cudaFuncAttributeMaxDynamicSharedMemorySize, S::kSharedBytes);
    prefill<DIM><<<grid, S::kThreads, S::kSharedBytes, stream>>>(
        q, k, v, block_tables, lengths, query_starts, out, heads, kv_heads, head_dim, page_size, max_pages, scale);
}

// Parameters as day 10's paged_prefill.
extern "C" void paged_prefill_f32(const float* q, const float* k_cache, const float* v_cache, const int* block_tables,
                                  const int* lengths, const int* query_starts, float* out, int batch, int tokens,
                                  int heads, int kv_heads, int head_dim, int page_size, int max_pages, int max_queries,
                                  float scale, cudaStream_t stream) {
    if (batch == 0 || tokens == 0 || heads == 0 || head_dim == 0 || max_queries == 0) return;
    const auto launch = head_dim <= 32   ? launch_prefill<32>
                        : head_dim <= 64 ? launch_prefill<64>
                        : head_dim <= 96 ? launch_prefill<96>
                                         : launch_prefill<128>;
    launch(q, k_cache, v_cache, block_tables, lengths, query_starts, out, batch, heads, kv_heads, head_dim, page_size,
           max_pages, max_queries, scale, stream);
}
