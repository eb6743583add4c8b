// Attention of one query per sequence to its KV cache, in three versions, f32. One block is one warp.
//
//   q, out: [batch, heads, head_dim]     k, v: [batch, kv_heads, max_len, head_dim]     lengths: [batch]
//
// Lane i holds the columns i, i + 32, i + 64, i + 96 of a query, a key, a value and a result: head_dim is up to 128.
#include <cuda_runtime.h>

#include <cmath>

constexpr int kColumns = 4;
constexpr int kGroup = 8;  // query heads that share a key/value head, at most

__device__ float warp_sum(float x) {
    for (int reach = 16; reach > 0; reach /= 2) x += __shfl_xor_sync(0xffffffff, x, reach);
    return x;
}

// Loads this lane's columns of a row.
__device__ void load_row(const float* row, int head_dim, float* x) {
    for (int c = 0; c < kColumns; ++c) {
        const int d = threadIdx.x + 32 * c;
        x[c] = d < head_dim ? row[d] : 0.0f;
    }
}

__device__ void store_row(float* row, int head_dim, const float* x, float factor) {
    for (int c = 0; c < kColumns; ++c) {
        const int d = threadIdx.x + 32 * c;
        if (d < head_dim) row[d] = x[c] * factor;
    }
}

// Day 6's state of one query: the largest score, the sum of exp(score - m), the sum of exp(score - m) * value.
struct State {
    float m = -INFINITY, l = 0, o[kColumns] = {};

    __device__ void add(float score, const float* value) {
        const float new_m = fmaxf(m, score);
        const float correction = expf(m - new_m), weight = expf(score - new_m);
        m = new_m;
        l = l * correction + weight;
        for (int c = 0; c < kColumns; ++c) o[c] = o[c] * correction + weight * value[c];
    }
};

__device__ float dot(const float* a, const float* b) {
    float sum = 0;
    for (int c = 0; c < kColumns; ++c) sum += a[c] * b[c];
    return warp_sum(sum);
}

// Version 1: one block for each query head.
__global__ void decode_kernel1(const float* q, const float* k, const float* v, const int* lengths, float* out,
                               int heads, int kv_heads, int max_len, int head_dim, float scale) {
    const int head = blockIdx.x % heads, b = blockIdx.x / heads;
    const int kv_head = head / (heads / kv_heads);
    const size_t cache = (static_cast<size_t>(b) * kv_heads + kv_head) * max_len;
    float query[kColumns], key[kColumns], value[kColumns];
    load_row(q + static_cast<size_t>(blockIdx.x) * head_dim, head_dim, query);
    State state;
    for (int i = 0; i < lengths[b]; ++i) {
        load_row(k + (cache + i) * head_dim, head_dim, key);
        load_row(v + (cache + i) * head_dim, head_dim, value);
        state.add(dot(query, key) * scale, value);
    }
    store_row(out + static_cast<size_t>(blockIdx.x) * head_dim, head_dim, state.o, state.l > 0 ? 1 / state.l : 0);
}

// Version 2: one block for each key/value head, with all query heads of its group.
__global__ void decode_kernel2(const float* q, const float* k, const float* v, const int* lengths, float* out,
                               int heads, int kv_heads, int max_len, int head_dim, float scale) {
    const int group = heads / kv_heads, b = blockIdx.x / kv_heads;
    const size_t first_head = static_cast<size_t>(blockIdx.x) * group;
    const size_t cache = static_cast<size_t>(blockIdx.x) * max_len;
    float query[kGroup][kColumns], key[kColumns], value[kColumns];
    for (int h = 0; h < group; ++h) load_row(q + (first_head + h) * head_dim, head_dim, query[h]);
    State state[kGroup];
    for (int i = 0; i < lengths[b]; ++i) {
        load_row(k + (cache + i) * head_dim, head_dim, key);
        load_row(v + (cache + i) * head_dim, head_dim, value);
        for (int h = 0; h < group; ++h) state[h].add(dot(query[h], key) * scale, value);
    }
    for (int h = 0; h < group; ++h) {
        store_row(out + (first_head + h) * head_dim, head_dim, state[h].o, state[h].l > 0 ? 1 / state[h].l : 0);
    }
}

// Version 3: one block for each part of the keys of a key/value head. It stores (m, l, o) without the division.
__global__ void decode_kernel3(const float* q, const float* k, const float* v, const int* lengths, float* partial_out,
                               float2* partial_stats, int heads, int kv_heads, int max_len, int head_dim, int splits,
                               float scale) {
    const int split = blockIdx.x % splits, kv_head = blockIdx.x / splits;  // kv_head counts over all sequences
    const int group = heads / kv_heads, length = lengths[kv_head / kv_heads];
    const int part = (length + splits - 1) / splits;
    const int begin = split * part, end = min(begin + part, length);
    const size_t first_head = static_cast<size_t>(kv_head) * group;
    const size_t cache = static_cast<size_t>(kv_head) * max_len;
    float query[kGroup][kColumns], key[kColumns], value[kColumns];
    for (int h = 0; h < group; ++h) load_row(q + (first_head + h) * head_dim, head_dim, query[h]);
    State state[kGroup];
    for (int i = begin; i < end; ++i) {
        load_row(k + (cache + i) * head_dim, head_dim, key);
        load_row(v + (cache + i) * head_dim, head_dim, value);
        for (int h = 0; h < group; ++h) state[h].add(dot(query[h], key) * scale, value);
    }
    for (int h = 0; h < group; ++h) {
        const size_t place = (first_head + h) * splits + split;
        store_row(partial_out + place * head_dim, head_dim, state[h].o, 1);
        if (threadIdx.x == 0) partial_stats[place] = make_float2(state[h].m, state[h].l);
    }
}

// Combines the parts of one query head.
__global__ void combine_kernel(const float* partial_out, const float2* partial_stats, float* out, int head_dim,
                               int splits) {
    const size_t first = static_cast<size_t>(blockIdx.x) * splits;
    float m = -INFINITY, l = 0, o[kColumns] = {}, part[kColumns];
    for (int p = 0; p < splits; ++p) m = fmaxf(m, partial_stats[first + p].x);
    for (int p = 0; p < splits && m > -INFINITY; ++p) {
        const float weight = expf(partial_stats[first + p].x - m);  // scales the part to the common maximum
        l += weight * partial_stats[first + p].y;
        load_row(partial_out + (first + p) * head_dim, head_dim, part);
        for (int c = 0; c < kColumns; ++c) o[c] += weight * part[c];
    }
    store_row(out + static_cast<size_t>(blockIdx.x) * head_dim, head_dim, o, l > 0 ? 1 / l : 0);
}

extern "C" void decode_1(const float* q, const float* k, const float* v, const int* lengths, float* out, int batch,
                         int heads, int kv_heads, int max_len, int head_dim, float scale, cudaStream_t stream) {
    decode_kernel1<<<batch * heads, 32, 0, stream>>>(q, k, v, lengths, out, heads, kv_heads, max_len, head_dim, scale);
}

extern "C" void decode_2(const float* q, const float* k, const float* v, const int* lengths, float* out, int batch,
                         int heads, int kv_heads, int max_len, int head_dim, float scale, cudaStream_t stream) {
    decode_kernel2<<<batch * kv_heads, 32, 0, stream>>>(q, k, v, lengths, out, heads, kv_heads, max_len, head_dim,
                                                        scale);
}

extern "C" void decode_3(const float* q, const float* k, const float* v, const int* lengths, float* out,
                         float* partial_out, float* partial_stats, int batch, int heads, int kv_heads, int max_len,
                         int head_dim, int splits, float scale, cudaStream_t stream) {
    float2* stats = reinterpret_cast<float2*>(partial_stats);
    decode_kernel3<<<batch * kv_heads * splits, 32, 0, stream>>>(q, k, v, lengths, partial_out, stats, heads, kv_heads,
                                                                 max_len, head_dim, splits, scale);
    combine_kernel<<<batch * heads, 32, 0, stream>>>(partial_out, stats, out, head_dim, splits);
}
