// Paged attention with one warp for each key/value head of a sequence. Every lane computes all scores and a few columns
// of the output.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>

// Returns the offset of a key's row in the cache.
__device__ size_t place_of(const int* table, int key, int kv_head, int kv_heads, int page_size, int head_dim) {
    const size_t page = table[key / page_size];
    return ((page * kv_heads + kv_head) * page_size + key % page_size) * head_dim;
}

constexpr int kHeads = 16;  // maximum query heads of a group
constexpr int kColumns = 4;
constexpr int kKeys = 8;    // keys in shared memory at a time
constexpr int kBytes = 16;  // bytes in one access

template <typename T>
__global__ void decode(const T* q, const T* k, const T* v, const int* block_tables, const int* lengths, T* out,
                       int heads, int kv_heads, int head_dim, int page_size, int max_pages, float scale) {
    __shared__ uint4 key_rows[kKeys * 128 * sizeof(T) / kBytes], value_rows[kKeys * 128 * sizeof(T) / kBytes];
    const int group = heads / kv_heads, lane = threadIdx.x;
    const int vectors = head_dim * sizeof(T) / kBytes;  // 16-byte accesses per row
    const int kv_head = blockIdx.x % kv_heads, b = blockIdx.x / kv_heads;
    const int begin = 0, end = lengths[b];
    const size_t first_head = static_cast<size_t>(b) * heads + kv_head * group;
    const int* table = block_tables + static_cast<size_t>(b) * max_pages;
    float query[kHeads][kColumns] = {}, o[kHeads][kColumns] = {}, m[kHeads], l[kHeads];
    for (int h = 0; h < group; ++h) {
        m[h] = -INFINITY;
        l[h] = 0;
        for (int c = 0; c < kColumns; ++c) {
            const int d = lane + 32 * c;
            if (d < head_dim) query[h][c] = static_cast<float>(q[(first_head + h) * head_dim + d]) * scale;
        }
    }
    for (int key = begin; key < end; ++key) {
        const int within = (key - begin) % kKeys, first = key;
        if (within == 0) {
            __syncwarp();
            for (int i = lane; i < min(kKeys, end - first) * vectors; i += 32) {
                const size_t from = place_of(table, first + i / vectors, kv_head, kv_heads, page_size, head_dim);
                key_rows[i] = reinterpret_cast<const uint4*>(k + from)[i % vectors];
                value_rows[i] = reinterpret_cast<const uint4*>(v + from)[i % vectors];
            }
            __syncwarp();
        }
        float x[kColumns] = {}, y[kColumns] = {};
        for (int c = 0; c < kColumns; ++c) {
            const int d = lane + 32 * c;
            const int at = within * head_dim + d;
            if (d < head_dim) {
                x[c] = static_cast<float>(reinterpret_cast<const T*>(key_rows)[at]);
                y[c] = static_cast<float>(reinterpret_cast<const T*>(value_rows)[at]);
            }
        }
        for (int h = 0; h < group; ++h) {
            float score = 0;
            for (int c = 0; c < kColumns; ++c) score += query[h][c] * x[c];
            for (int reach = 16; reach > 0; reach /= 2) score += __shfl_xor_sync(0xffffffffu, score, reach);
            const float new_m = fmaxf(m[h], score);
            const float correction = expf(m[h] - new_m), p = expf(score - new_m);
            m[h] = new_m;
            l[h] = l[h] * correction + p;
            for (int c = 0; c < kColumns; ++c) o[h][c] = o[h][c] * correction + p * y[c];
        }
    }
    for (int h = 0; h < group; ++h) {
        for (int c = 0; c < kColumns; ++c) {
            const int d = lane + 32 * c;
            if (d < head_dim) out[(first_head + h) * head_dim + d] = static_cast<T>(l[h] > 0 ? o[h][c] / l[h] : 0.0f);
        }
    }
}

template <typename T>
void paged_attention(const T* q, const T* k, const T* v, const int* block_tables, const int* lengths, T* out, int batch,
                     int heads, int kv_heads, int head_dim, int page_size, int max_pages, float scale,
                     cudaStream_t stream) {
    if (batch == 0 || heads == 0 || head_dim == 0) return;
    decode<<<batch * kv_heads, 32, 0, stream>>>(q, k, v, block_tables, lengths, out, heads, kv_heads, head_dim,
                                                page_size, max_pages, scale);
}
