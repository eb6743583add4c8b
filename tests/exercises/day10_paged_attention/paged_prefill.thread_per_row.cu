// Paged prefill in which a thread computes one query of one head. The heads of a group share tiles of keys, which have
// the dtype of k.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>

// Returns the offset of a key's row in the cache.
__device__ size_t place_of(const int* table, int key, int kv_head, int kv_heads, int page_size, int head_dim) {
    const size_t page = table[key / page_size];
    return ((page * kv_heads + kv_head) * page_size + key % page_size) * head_dim;
}

constexpr int kRows = 64;
constexpr int kKeys = 16;

template <typename T, int DIM>
__global__ void attend(const T* q, const T* k, const T* v, const int* block_tables, const int* lengths,
                       const int* query_starts, T* out, int heads, int kv_heads, int head_dim, int page_size,
                       int max_pages, float scale) {
    __shared__ T k_tile[kKeys][DIM];
    __shared__ T v_tile[kKeys][DIM];
    const int group = heads / kv_heads;
    const int kv_head = blockIdx.y % kv_heads, b = blockIdx.y / kv_heads;
    const int start = query_starts[b], query_len = query_starts[b + 1] - start, key_len = lengths[b];
    const int* table = block_tables + static_cast<size_t>(b) * max_pages;
    const long long rows = static_cast<long long>(query_len) * group;
    if (static_cast<long long>(blockIdx.x) * kRows >= rows) return;  // the same for all threads of the block
    const long long row = static_cast<long long>(blockIdx.x) * kRows + threadIdx.x;
    const bool exists = row < rows;
    const int query = row / group;
    const size_t place = ((static_cast<size_t>(start) + query) * heads + kv_head * group + row % group) * head_dim;

    float q_row[DIM] = {}, o[DIM] = {};
    if (exists) {
        for (int d = 0; d < head_dim; d += 16 / sizeof(T)) {
            const uint4 bits = *reinterpret_cast<const uint4*>(q + place + d);
            const T* elements = reinterpret_cast<const T*>(&bits);
            for (int j = 0; j < 16 / static_cast<int>(sizeof(T)); ++j) {
                q_row[d + j] = static_cast<float>(elements[j]) * scale;
            }
        }
    }
    float m = -INFINITY, l = 0;
    const int visible = query + key_len - query_len + 1;
    for (int first = 0; first < key_len; first += kKeys) {
        __syncthreads();
        for (int i = threadIdx.x; i < kKeys * head_dim; i += kRows) {
            const int key = i / head_dim, d = i % head_dim;
            const bool there = first + key < key_len;
            const size_t at = there ? place_of(table, first + key, kv_head, kv_heads, page_size, head_dim) + d : 0;
            k_tile[key][d] = there ? k[at] : static_cast<T>(0.0f);
            v_tile[key][d] = there ? v[at] : static_cast<T>(0.0f);
        }
        __syncthreads();
        for (int key = 0; key < kKeys; ++key) {
            if (!exists || first + key >= visible || first + key >= key_len) break;
            float score = 0;
            for (int d = 0; d < head_dim; ++d) score += q_row[d] * static_cast<float>(k_tile[key][d]);
            const float new_m = fmaxf(m, score);
            const float correction = expf(m - new_m), p = expf(score - new_m);
            m = new_m;
            l = l * correction + p;
            for (int d = 0; d < head_dim; ++d) o[d] = o[d] * correction + p * static_cast<float>(v_tile[key][d]);
        }
    }
    if (!exists) return;
    for (int d = 0; d < head_dim; d += 16 / sizeof(T)) {
        uint4 bits;
        T* elements = reinterpret_cast<T*>(&bits);
        for (int j = 0; j < 16 / static_cast<int>(sizeof(T)); ++j)
            elements[j] = static_cast<T>(l > 0 ? o[d + j] / l : 0.0f);
        *reinterpret_cast<uint4*>(out + place + d) = bits;
    }
}

template <typename T>
void paged_prefill(const T* q, const T* k_cache, const T* v_cache, const int* block_tables, const int* lengths,
                   const int* query_starts, T* out, int batch, int tokens, int heads, int kv_heads, int head_dim,
                   int page_size, int max_pages, int max_queries, float scale, cudaStream_t stream) {
    if (batch == 0 || tokens == 0 || heads == 0 || head_dim == 0) return;
    const long long rows = static_cast<long long>(max_queries) * (heads / kv_heads);
    const dim3 grid((rows + kRows - 1) / kRows, batch * kv_heads);
    const auto kernel = head_dim <= 64 ? attend<T, 64> : attend<T, 128>;
    kernel<<<grid, kRows, 0, stream>>>(q, k_cache, v_cache, block_tables, lengths, query_starts, out, heads, kv_heads,
                                       head_dim, page_size, max_pages, scale);
}
