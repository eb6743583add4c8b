// Attention of one query per sequence to a paged KV cache, in three versions, and the append that fills the pages. f32.
//
//   q, out: [batch, heads, head_dim]     k_cache, v_cache: [pages, kv_heads, page_size, head_dim]     lengths: [batch]
//   block_tables: [batch, max_pages]
//
// One block is one warp. Lane i holds the columns i, i + 32, i + 64, i + 96, so head_dim is at most 128.
#include <cuda_runtime.h>

#include <cmath>

constexpr int kColumns = 4;
constexpr int kGroup = 8;  // query heads that share a key/value head, at most

__device__ float warp_sum(float x) {
    for (int reach = 16; reach > 0; reach /= 2) x += __shfl_xor_sync(0xffffffff, x, reach);
    return x;
}

__device__ void load_row(const float* row, int head_dim, float* x) {
    for (int c = 0; c < kColumns; ++c) {
        const int d = threadIdx.x + 32 * c;
        x[c] = d < head_dim ? row[d] : 0.0f;
    }
}

// Day 7's version 2: all query heads of a group, one key after the other.
struct Group {
    float query[kGroup][kColumns], m[kGroup], l[kGroup], o[kGroup][kColumns];

    __device__ void begin(const float* q, int group, int head_dim) {
        for (int h = 0; h < group; ++h) {
            load_row(q + h * head_dim, head_dim, query[h]);
            m[h] = -INFINITY;
            l[h] = 0;
            for (int c = 0; c < kColumns; ++c) o[h][c] = 0;
        }
    }

    __device__ void add(const float* k_row, const float* v_row, int group, int head_dim, float scale) {
        float key[kColumns], value[kColumns];
        load_row(k_row, head_dim, key);
        load_row(v_row, head_dim, value);
        for (int h = 0; h < group; ++h) {
            float sum = 0;
            for (int c = 0; c < kColumns; ++c) sum += query[h][c] * key[c];
            const float score = warp_sum(sum) * scale, new_m = fmaxf(m[h], score);
            const float correction = expf(m[h] - new_m), weight = expf(score - new_m);
            m[h] = new_m;
            l[h] = l[h] * correction + weight;
            for (int c = 0; c < kColumns; ++c) o[h][c] = o[h][c] * correction + weight * value[c];
        }
    }

    __device__ void end(float* out, int group, int head_dim) {
        for (int h = 0; h < group; ++h) {
            for (int c = 0; c < kColumns; ++c) {
                const int d = threadIdx.x + 32 * c;
                if (d < head_dim) out[h * head_dim + d] = l[h] > 0 ? o[h][c] / l[h] : 0.0f;
            }
        }
    }
};

// Version 1, first half: copy the pages of every sequence to a contiguous [batch, kv_heads, max_len, head_dim].
__global__ void gather_kernel(const float* cache, const int* block_tables, const int* lengths, float* gathered,
                              int kv_heads, int head_dim, int page_size, int max_pages) {
    const int kv_head = blockIdx.x % kv_heads, b = blockIdx.x / kv_heads;
    const size_t max_len = static_cast<size_t>(max_pages) * page_size;
    for (int key = 0; key < lengths[b]; ++key) {
        const size_t page = block_tables[b * max_pages + key / page_size];
        const size_t row = (page * kv_heads + kv_head) * page_size + key % page_size;
        for (int d = threadIdx.x; d < head_dim; d += 32) {
            gathered[(blockIdx.x * max_len + key) * head_dim + d] = cache[row * head_dim + d];
        }
    }
}

// Version 1, second half: day 7's kernel.
__global__ void paged_kernel1(const float* q, const float* k, const float* v, const int* lengths, float* out, int heads,
                              int kv_heads, int max_len, int head_dim, float scale) {
    const int group = heads / kv_heads;
    const size_t cache = static_cast<size_t>(blockIdx.x) * max_len,
                 first_head = static_cast<size_t>(blockIdx.x) * group;
    Group state;
    state.begin(q + first_head * head_dim, group, head_dim);
    for (int key = 0; key < lengths[blockIdx.x / kv_heads]; ++key) {
        state.add(k + (cache + key) * head_dim, v + (cache + key) * head_dim, group, head_dim, scale);
    }
    state.end(out + first_head * head_dim, group, head_dim);
}

// Version 2: look up the page of every key in the block table.
__global__ void paged_kernel2(const float* q, const float* k_cache, const float* v_cache, const int* block_tables,
                              const int* lengths, float* out, int heads, int kv_heads, int head_dim, int page_size,
                              int max_pages, float scale) {
    const int group = heads / kv_heads, kv_head = blockIdx.x % kv_heads, b = blockIdx.x / kv_heads;
    const size_t first_head = static_cast<size_t>(blockIdx.x) * group;
    Group state;
    state.begin(q + first_head * head_dim, group, head_dim);
    for (int key = 0; key < lengths[b]; ++key) {
        const size_t page = block_tables[b * max_pages + key / page_size];
        const size_t row = (page * kv_heads + kv_head) * page_size + key % page_size;
        state.add(k_cache + row * head_dim, v_cache + row * head_dim, group, head_dim, scale);
    }
    state.end(out + first_head * head_dim, group, head_dim);
}

// Version 3: look up each page once, then read all of its keys.
__global__ void paged_kernel3(const float* q, const float* k_cache, const float* v_cache, const int* block_tables,
                              const int* lengths, float* out, int heads, int kv_heads, int head_dim, int page_size,
                              int max_pages, float scale) {
    const int group = heads / kv_heads, kv_head = blockIdx.x % kv_heads, b = blockIdx.x / kv_heads;
    const size_t first_head = static_cast<size_t>(blockIdx.x) * group;
    const int length = lengths[b];
    Group state;
    state.begin(q + first_head * head_dim, group, head_dim);
    for (int first = 0; first < length; first += page_size) {
        const size_t page = block_tables[b * max_pages + first / page_size];
        const size_t start = (page * kv_heads + kv_head) * page_size * head_dim;  // this head's rows are contiguous
        for (int i = 0; i < min(page_size, length - first); ++i) {
            state.add(k_cache + start + i * head_dim, v_cache + start + i * head_dim, group, head_dim, scale);
        }
    }
    state.end(out + first_head * head_dim, group, head_dim);
}

// Token t of k and v goes to slot slots[t] of the cache. One block per token and head.
__global__ void append_kernel(const float* k, const float* v, const long long* slots, float* k_cache, float* v_cache,
                              int kv_heads, int head_dim, int page_size) {
    const int head = blockIdx.x % kv_heads, token = blockIdx.x / kv_heads;
    const long long slot = slots[token];
    const size_t row = (slot / page_size * kv_heads + head) * page_size + slot % page_size;
    for (int d = threadIdx.x; d < head_dim; d += 32) {
        k_cache[row * head_dim + d] = k[static_cast<size_t>(blockIdx.x) * head_dim + d];
        v_cache[row * head_dim + d] = v[static_cast<size_t>(blockIdx.x) * head_dim + d];
    }
}

extern "C" void paged_1(const float* q, const float* k_cache, const float* v_cache, const int* block_tables,
                        const int* lengths, float* k, float* v, float* out, int batch, int heads, int kv_heads,
                        int head_dim, int page_size, int max_pages, float scale, cudaStream_t stream) {
    const int blocks = batch * kv_heads, max_len = max_pages * page_size;
    gather_kernel<<<blocks, 32, 0, stream>>>(k_cache, block_tables, lengths, k, kv_heads, head_dim, page_size,
                                             max_pages);
    gather_kernel<<<blocks, 32, 0, stream>>>(v_cache, block_tables, lengths, v, kv_heads, head_dim, page_size,
                                             max_pages);
    paged_kernel1<<<blocks, 32, 0, stream>>>(q, k, v, lengths, out, heads, kv_heads, max_len, head_dim, scale);
}

extern "C" void paged_2(const float* q, const float* k_cache, const float* v_cache, const int* block_tables,
                        const int* lengths, float* out, int batch, int heads, int kv_heads, int head_dim, int page_size,
                        int max_pages, float scale, cudaStream_t stream) {
    paged_kernel2<<<batch * kv_heads, 32, 0, stream>>>(q, k_cache, v_cache, block_tables, lengths, out, heads, kv_heads,
                                                       head_dim, page_size, max_pages, scale);
}

extern "C" void paged_3(const float* q, const float* k_cache, const float* v_cache, const int* block_tables,
                        const int* lengths, float* out, int batch, int heads, int kv_heads, int head_dim, int page_size,
                        int max_pages, float scale, cudaStream_t stream) {
    paged_kernel3<<<batch * kv_heads, 32, 0, stream>>>(q, k_cache, v_cache, block_tables, lengths, out, heads, kv_heads,
                                                       head_dim, page_size, max_pages, scale);
}

extern "C" void append(const float* k, const float* v, const long long* slots, float* k_cache, float* v_cache,
                       int tokens, int kv_heads, int head_dim, int page_size, cudaStream_t stream) {
    if (tokens == 0) return;
    append_kernel<<<tokens * kv_heads, 32, 0, stream>>>(k, v, slots, k_cache, v_cache, kv_heads, head_dim, page_size);
}
