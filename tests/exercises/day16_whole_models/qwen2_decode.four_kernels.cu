// Each layer takes four kernels. Every block that needs a normalized row computes it again. One block computes a
// key/value head and its query heads, from the projection to the attention. The kernels of the output and down
// projections add the residual.
#include <cuda_runtime.h>

#include "llmk/reduce.cuh"

constexpr int kBlock = 64;

// Returns the sum of weight[i] * x[i] * gain[i], computed by a warp.
__device__ float dot(const float* weight, const float* x, const float* gain, int count) {
    float sum = 0;
    for (int i = threadIdx.x % 32; i < count; i += 32) sum += weight[i] * x[i] * (gain ? gain[i] : 1.0f);
    return llmk::warp_sum(sum);
}

__device__ float one_over_root(const float* x, int count, float eps) {
    return rsqrtf(dot(x, x, nullptr, count) / count + eps);
}

__global__ void first(const int* ids, const float* table, float* x, int c) {
    const int i = blockIdx.x * kBlock + threadIdx.x;
    if (i < c) x[blockIdx.y * c + i] = table[ids[blockIdx.y] * c + i];
}

// Computes the norm, q, k, v and RoPE, appends to the cache and computes the attention, for one key/value head
// (blockIdx.x) of one sequence (blockIdx.y).
__global__ void attention(const float* x, const float* gain, const float* weight, const float* bias, const int* lengths,
                          const int* tables, float* k_cache, float* v_cache, float* out, int c, int heads, int d,
                          int page_size, int max_pages, float eps, float theta) {
    extern __shared__ float mine[];  // the query heads of the group, the key, the value: [group + 2, d]
    const int kv_heads = gridDim.x, kv_head = blockIdx.x, group = heads / kv_heads, length = lengths[blockIdx.y];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = kBlock / 32;
    x += blockIdx.y * c;
    const int* table = tables + blockIdx.y * max_pages;
    const float scale = one_over_root(x, c, eps);
    for (int i = warp; i < (group + 2) * d; i += warps) {
        const int part = i / d;
        const int head = part < group ? kv_head * group + part : heads + (part - group) * kv_heads + kv_head;
        const float value = dot(weight + (head * d + i % d) * c, x, gain, c) * scale + bias[head * d + i % d];
        if (lane == 0) mine[i] = value;
    }
    __syncthreads();
    const size_t behind = (static_cast<size_t>(table[(length - 1) / page_size]) * kv_heads + kv_head) * page_size;
    const size_t place = (behind + (length - 1) % page_size) * d;
    for (int i = threadIdx.x; i < (group + 1) * (d / 2); i += kBlock) {
        const int part = i / (d / 2), channel = i % (d / 2);
        const float angle = (length - 1) * expf(-logf(theta) * channel / (d / 2));
        float &a = mine[part * d + channel], &b = mine[part * d + channel + d / 2];
        const float turned = a * cosf(angle) - b * sinf(angle);
        b = b * cosf(angle) + a * sinf(angle);
        a = turned;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < d; i += kBlock) {
        k_cache[place + i] = mine[group * d + i];
        v_cache[place + i] = mine[(group + 1) * d + i];
    }
    __syncthreads();
    for (int part = warp; part < group; part += warps) {
        float* q = mine + part * d;
        float* result = out + (blockIdx.y * heads + kv_head * group + part) * d;
        float sum = 0, largest = 0;  // the loop starts with the newest key, which sets sum and largest
        for (int key = length - 1; key >= 0; --key) {
            const size_t page = static_cast<size_t>(table[key / page_size]) * kv_heads + kv_head;
            const size_t row = (page * page_size + key % page_size) * d;
            const float score = dot(k_cache + row, q, nullptr, d) / sqrtf(d);
            const float now = key == length - 1 ? score : fmaxf(largest, score);
            const float old = key == length - 1 ? 0.0f : expf(largest - now), share = expf(score - now);
            for (int i = lane; i < d; i += 32) {
                result[i] = (key == length - 1 ? 0.0f : result[i] * old) + share * v_cache[row + i];
            }
            sum = sum * old + share;
            largest = now;
        }
        for (int i = lane; i < d; i += 32) result[i] /= sum;
    }
}

// Computes x[n] += dot(weight[n], in). One warp computes one n.
__global__ void project(const float* in, const float* weight, float* x, int from, int to) {
    const int n = blockIdx.x * (kBlock / 32) + threadIdx.x / 32;
    if (n >= to) return;
    const float sum = dot(weight + static_cast<size_t>(n) * from, in + blockIdx.y * from, nullptr, from);
    if (threadIdx.x % 32 == 0) x[blockIdx.y * to + n] += sum;
}

// Computes the norm, then SwiGLU of gate and up (f features). If f is 0, it computes only a matrix product, for the
// logits.
__global__ void normed(const float* x, const float* gain, const float* weight, float* out, int c, int count, int f,
                       float eps) {
    const int n = blockIdx.x * (kBlock / 32) + threadIdx.x / 32;
    if (n >= count) return;
    x += blockIdx.y * c;
    const float scale = one_over_root(x, c, eps);
    float value = dot(weight + static_cast<size_t>(n) * c, x, gain, c) * scale;
    if (f > 0) value *= dot(weight + static_cast<size_t>(n + f) * c, x, gain, c) * scale / (1 + expf(-value));
    if (threadIdx.x % 32 == 0) out[blockIdx.y * count + n] = value;
}

extern "C" void qwen2_decode(const int* ids, const int* lengths, const int* block_tables, const float* table,
                             const float* norm_1, const float* qkv_weight, const float* qkv_bias,
                             const float* out_weight, const float* norm_2, const float* gate_up_weight,
                             const float* down_weight, const float* last_norm, float* k_cache, float* v_cache,
                             float* logits, float* work, int batch, int layers, int vocabulary, int hidden, int heads,
                             int kv_heads, int head_dim, int feed_forward, int pages, int page_size, int max_pages,
                             float eps, float theta, cudaStream_t stream) {
    if (batch == 0) return;
    float *x = work, *attended = x + batch * hidden, *inside = attended + batch * heads * head_dim;
    const auto warps = [batch](int count) { return dim3((count + kBlock / 32 - 1) / (kBlock / 32), batch); };
    const int rows = (heads + 2 * kv_heads) * head_dim, shared = (heads / kv_heads + 2) * head_dim * 4;
    first<<<dim3((hidden + kBlock - 1) / kBlock, batch), kBlock, 0, stream>>>(ids, table, x, hidden);
    for (int i = 0; i < layers; ++i) {
        const size_t cache = static_cast<size_t>(i) * pages * kv_heads * page_size * head_dim;
        attention<<<dim3(kv_heads, batch), kBlock, shared, stream>>>(
            x, norm_1 + i * hidden, qkv_weight + i * rows * hidden, qkv_bias + i * rows, lengths, block_tables,
            k_cache + cache, v_cache + cache, attended, hidden, heads, head_dim, page_size, max_pages, eps, theta);
        project<<<warps(hidden), kBlock, 0, stream>>>(attended, out_weight + i * hidden * heads * head_dim, x,
                                                      heads * head_dim, hidden);
        normed<<<warps(feed_forward), kBlock, 0, stream>>>(x, norm_2 + i * hidden,
                                                           gate_up_weight + i * 2 * feed_forward * hidden, inside,
                                                           hidden, feed_forward, feed_forward, eps);
        project<<<warps(hidden), kBlock, 0, stream>>>(inside, down_weight + i * hidden * feed_forward, x, feed_forward,
                                                      hidden);
    }
    normed<<<warps(vocabulary), kBlock, 0, stream>>>(x, last_norm, table, logits, hidden, vocabulary, 0, eps);
}
