// A decode kernel with one warp for each part of the keys. Every lane computes all scores and a few columns of the
// output.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>

constexpr int kHeads = 16;  // maximum query heads of a group
constexpr int kColumns = 4;
constexpr int kKeys = 8;    // keys in shared memory at a time
constexpr int kBytes = 16;  // bytes in one access

template <typename T>
__global__ void decode(const T* q, const T* k, const T* v, const int* lengths, float* partial_out, float* partial_stats,
                       int heads, int kv_heads, int max_len, int head_dim, int splits, float scale) {
    __shared__ uint4 key_rows[kKeys * 128 * sizeof(T) / kBytes], value_rows[kKeys * 128 * sizeof(T) / kBytes];
    const int group = heads / kv_heads, lane = threadIdx.x;
    const int vectors = head_dim * sizeof(T) / kBytes;  // 16-byte accesses per row
    const int split = blockIdx.x, kv_head = blockIdx.y % kv_heads, b = blockIdx.y / kv_heads;
    const int length = lengths[b], part = (length + splits - 1) / splits;
    const int begin = split * part, end = min(begin + part, length);
    const size_t first_head = static_cast<size_t>(b) * heads + kv_head * group;
    const size_t cache = (static_cast<size_t>(b) * kv_heads + kv_head) * max_len * head_dim;
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
                const size_t from = cache + static_cast<size_t>(first + i / vectors) * head_dim;
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
    for (int h = 0; h < group && begin < end; ++h) {
        const size_t place = (first_head + h) * splits + split;
        for (int c = 0; c < kColumns; ++c) {
            const int d = lane + 32 * c;
            if (d < head_dim) partial_out[place * head_dim + d] = o[h][c];
        }
        if (lane < 2) partial_stats[place * 2 + lane] = lane == 0 ? m[h] : l[h];
    }
}

template <typename T>
__global__ void combine(const float* partial_out, const float* partial_stats, const int* lengths, T* out, int heads,
                        int head_dim, int splits) {
    const size_t head = blockIdx.x;
    const int length = lengths[blockIdx.x / heads], part = (length + splits - 1) / splits;
    const int parts = part > 0 ? (length + part - 1) / part : 0;
    float m = -INFINITY;
    for (int p = 0; p < parts; ++p) m = fmaxf(m, partial_stats[(head * splits + p) * 2]);
    for (int d = threadIdx.x; d < head_dim; d += blockDim.x) {
        float l = 0, o = 0;
        for (int p = 0; p < parts; ++p) {
            const float* stats = partial_stats + (head * splits + p) * 2;
            const float weight = expf(stats[0] - m);
            l += weight * stats[1];
            o += weight * partial_out[(head * splits + p) * head_dim + d];
        }
        out[head * head_dim + d] = static_cast<T>(l > 0 ? o / l : 0.0f);
    }
}

template <typename T>
void gqa_decode(const T* q, const T* k, const T* v, const int* lengths, T* out, float* partial_out,
                float* partial_stats, int batch, int heads, int kv_heads, int max_len, int head_dim, int splits,
                float scale, cudaStream_t stream) {
    if (batch == 0 || heads == 0 || head_dim == 0) return;
    decode<<<dim3(splits, batch * kv_heads), 32, 0, stream>>>(q, k, v, lengths, partial_out, partial_stats, heads,
                                                              kv_heads, max_len, head_dim, splits, scale);
    combine<<<batch * heads, 64, 0, stream>>>(partial_out, partial_stats, lengths, out, heads, head_dim, splits);
}
