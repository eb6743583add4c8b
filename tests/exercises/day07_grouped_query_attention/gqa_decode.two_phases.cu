// A decode kernel with two phases. First, the warps compute the scores of 64 keys and their softmax in shared memory.
// Then each thread sums one column of the values.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>

constexpr int kThreads = 128;
constexpr int kKeys = 64;
constexpr int kHeads = 16;  // maximum query heads of a group
constexpr int kBytes = 16;  // bytes in one access

template <typename T>
__global__ void decode(const T* q, const T* k, const T* v, const int* lengths, float* partial_out, float* partial_stats,
                       int heads, int kv_heads, int max_len, int head_dim, int splits, float scale) {
    __shared__ float query[kHeads][128];
    __shared__ float scores[kHeads][kKeys];
    __shared__ uint4 rows[kKeys * 128 * sizeof(T) / kBytes];  // holds keys, later values
    __shared__ float m[kHeads], l[kHeads], correction[kHeads];
    const int group = heads / kv_heads;
    const int split = blockIdx.x, kv_head = blockIdx.y % kv_heads, b = blockIdx.y / kv_heads;
    const int length = lengths[b], part = (length + splits - 1) / splits;
    const int begin = split * part, end = min(begin + part, length);
    if (begin >= end) return;
    const size_t cache = (static_cast<size_t>(b) * kv_heads + kv_head) * max_len * head_dim;
    const size_t first_head = static_cast<size_t>(b) * heads + kv_head * group;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int vectors = head_dim * sizeof(T) / kBytes;  // 16-byte accesses per row
    const T* row = reinterpret_cast<const T*>(rows);
    const auto load = [&](const T* from, int first, int count) {
        for (int i = threadIdx.x; i < count * vectors; i += kThreads) {
            rows[i] = reinterpret_cast<const uint4*>(from + cache +
                                                     static_cast<size_t>(first + i / vectors) * head_dim)[i % vectors];
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
    for (int h = 0; h < group; ++h) {
        const size_t place = (first_head + h) * splits + split;
        if (threadIdx.x < head_dim) partial_out[place * head_dim + threadIdx.x] = o[h];
        if (threadIdx.x == 0) {
            partial_stats[place * 2] = m[h];
            partial_stats[place * 2 + 1] = l[h];
        }
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
    decode<<<dim3(splits, batch * kv_heads), kThreads, 0, stream>>>(q, k, v, lengths, partial_out, partial_stats, heads,
                                                                    kv_heads, max_len, head_dim, splits, scale);
    combine<<<batch * heads, 64, 0, stream>>>(partial_out, partial_stats, lengths, out, heads, head_dim, splits);
}
