// Grouped-query attention, prefill: out = softmax(scale * q k^T) v, groups of query heads share a key/value head.
//
//   q, out: [batch, heads, query_len, head_dim]      k, v: [batch, kv_heads, key_len, head_dim]
//
// All heads of a group use the same keys. So the rows of a tile are the queries of *all* heads of a group: row r of
// key/value head g is query r / group of head g * group + r % group. A block of 128 threads walks over the keys once
// for 64 such rows. Thread (ty, tx) computes rows 4 ty ... 4 ty + 3: the scores of keys tx, tx + 8, tx + 16 and tx +
// 24, and columns 4 tx ... 4 tx + 3 of every 32 columns of the output.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>

#include "llmk/prefill.cuh"

template <typename T, int DIM>
__global__ void __launch_bounds__(llmk::PrefillShape<DIM>::kThreads, 2)
    attend(const T* __restrict__ q, const T* __restrict__ k, const T* __restrict__ v, T* __restrict__ out, int heads,
           int kv_heads, int query_len, int key_len, int head_dim, float scale, bool causal) {
    constexpr int kRows = llmk::PrefillShape<DIM>::kRows;
    extern __shared__ float4 shared[];
    const int group = heads / kv_heads;
    const long long rows = static_cast<long long>(query_len) * group;
    const int tiles = static_cast<int>((rows + kRows - 1) / kRows);
    // Under a causal mask the last queries see the most keys, so they start first.
    const long long first_row = static_cast<long long>(tiles - 1 - static_cast<int>(blockIdx.x % tiles)) * kRows;
    const size_t kv_head = blockIdx.x / tiles;  // counted over all sequences
    k += kv_head * key_len * head_dim;
    v += kv_head * key_len * head_dim;

    // Return the offset of a row in q and out, in elements. The heads of a group are contiguous.
    auto place = [&](long long row) { return ((kv_head * group + row % group) * query_len + row / group) * head_dim; };
    // Return the number of keys that a row sees: keys 0 ... query + key_len - query_len.
    auto visible = [&](long long row) {
        return causal ? row / group + key_len - query_len + 1 : static_cast<long long>(key_len);
    };
    auto key_place = [&](int key) { return static_cast<size_t>(key) * head_dim; };
    llmk::prefill_attention_rows<T, DIM>(shared, q, k, v, out, first_row, rows, head_dim, scale, place, key_place,
                                         visible);
}

template <typename T, int DIM>
void launch_attend(const T* q, const T* k, const T* v, T* out, int batch, int heads, int kv_heads, int query_len,
                   int key_len, int head_dim, float scale, bool causal, cudaStream_t stream) {
    using S = llmk::PrefillShape<DIM>;
    const long long rows = static_cast<long long>(query_len) * (heads / kv_heads);
    const int tiles = static_cast<int>((rows + S::kRows - 1) / S::kRows);
    cudaFuncSetAttribute(attend<T, DIM>, cudaFuncAttributeMaxDynamicSharedMemorySize, S::kSharedBytes);
    attend<T, DIM><<<batch * kv_heads * tiles, S::kThreads, S::kSharedBytes, stream>>>(
        q, k, v, out, heads, kv_heads, query_len, key_len, head_dim, scale, causal);
}

template <typename T>
void gqa_prefill(const T* q, const T* k, const T* v, T* out, int batch, int heads, int kv_heads, int query_len,
                 int key_len, int head_dim, float scale, bool causal, cudaStream_t stream) {
    if (batch == 0 || heads == 0 || query_len == 0 || head_dim == 0) return;
    const auto launch = head_dim <= 32   ? launch_attend<T, 32>
                        : head_dim <= 64 ? launch_attend<T, 64>
                        : head_dim <= 96 ? launch_attend<T, 96>
                                         : launch_attend<T, 128>;
    launch(q, k, v, out, batch, heads, kv_heads, query_len, key_len, head_dim, scale, causal, stream);
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
