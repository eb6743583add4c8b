// Paged attention in two phases. Warps compute the scores of 64 keys and their softmax in shared memory; then each
// thread sums one column of the values.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>

// Returns the offset of a key's row in the cache.
__device__ size_t place_of(const int* table, int key, int kv_head, int kv_heads, int page_size, int head_dim) {
    const size_t page = table[key / page_size];
    return ((page * kv_heads + kv_head) * page_size + key % page_size) * head_dim;
}

constexpr int kThreads = 128;
constexpr int kKeys = 64;
constexpr int kHeads = 16;  // maximum query heads of a group
constexpr int kBytes = 16;  // bytes in one access

template <typename T>
__global__ void decode(const T* q, const T* k, const T* v, const int* block_tables, const int* lengths, T* out,
                       int heads, int kv_heads, int head_dim, int page_size, int max_pages, float scale) {
    __shared__ float query[kHeads][128];
    __shared__ float scores[kHeads][kKeys];
    __shared__ uint4 rows[kKeys * 128 * sizeof(T) / kBytes];  // holds keys, later values
    __shared__ float m[kHeads], l[kHeads], correction[kHeads];
    const int group = heads / kv_heads;
    const int kv_head = blockIdx.x % kv_heads, b = blockIdx.x / kv_heads;
    const int begin = 0, end = lengths[b];
    const int* table = block_tables + static_cast<size_t>(b) * max_pages;
    const size_t first_head = static_cast<size_t>(b) * heads + kv_head * group;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int vectors = head_dim * sizeof(T) / kBytes;  // 16-byte accesses per row
    const T* row = reinterpret_cast<const T*>(rows);
    const auto load = [&](const T* from, int first, int count) {
        for (int i = threadIdx.x; i < count * vectors; i += kThreads) {
            rows[i] = reinterpret_cast<const uint4*>(
                from + place_of(table, first + i / vectors, kv_head, kv_heads, page_size, head_dim))[i % vectors];
        }
    };

    for (int i = threadIdx.x; i < group * head_dim; i += kThreads) {
        query[i / head_dim][i % head_dim] = static_cast<float>(q[first_head * head_dim + i]) * scale;
    }
    if (threadIdx.x < group) {
        m[threadIdx.x] = -INFINITY;
        l[threadIdx.x] = 0;
    }
    float o[kHeads] = {};  // this thread's column of the output, for each head
    for (int first = begin; first < end; first += kKeys) {
        const int count = min(kKeys, end - first);
        __syncthreads();
        load(k, first, count);
        __syncthreads();
        for (int key = warp; key < count; key += kThreads / 32) {
            float x[4] = {};
            for (int d = lane; d < head_dim; d += 32) {
                x[d / 32] = static_cast<float>(row[key * head_dim + d]);
            }
            for (int h = 0; h < group; ++h) {
                float sum = 0;
                for (int d = lane; d < head_dim; d += 32) sum += query[h][d] * x[d / 32];
                for (int reach = 16; reach > 0; reach /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, reach);
                if (lane == 0) scores[h][key] = sum;
            }
        }
        __syncthreads();
        load(v, first, count);
        if (threadIdx.x < group) {
            const int h = threadIdx.x;
            float new_m = m[h], sum = 0;
            for (int key = 0; key < count; ++key) new_m = fmaxf(new_m, scores[h][key]);
            for (int key = 0; key < count; ++key) sum += scores[h][key] = expf(scores[h][key] - new_m);
            correction[h] = expf(m[h] - new_m);
            l[h] = l[h] * correction[h] + sum;
            m[h] = new_m;
        }
        __syncthreads();
        if (threadIdx.x < head_dim) {
            for (int h = 0; h < group; ++h) o[h] *= correction[h];
            for (int key = 0; key < count; ++key) {
                const float x = static_cast<float>(row[key * head_dim + threadIdx.x]);
                for (int h = 0; h < group; ++h) o[h] += scores[h][key] * x;
            }
        }
    }
    __syncthreads();
    for (int h = 0; h < group; ++h) {
        const float sum = l[h];
        if (threadIdx.x < head_dim) {
            out[(first_head + h) * head_dim + threadIdx.x] = static_cast<T>(sum > 0 ? o[h] / sum : 0.0f);
        }
    }
}

template <typename T>
void paged_attention(const T* q, const T* k, const T* v, const int* block_tables, const int* lengths, T* out, int batch,
                     int heads, int kv_heads, int head_dim, int page_size, int max_pages, float scale,
                     cudaStream_t stream) {
    if (batch == 0 || heads == 0 || head_dim == 0) return;
    decode<<<batch * kv_heads, kThreads, 0, stream>>>(q, k, v, block_tables, lengths, out, heads, kv_heads, head_dim,
                                                      page_size, max_pages, scale);
}
