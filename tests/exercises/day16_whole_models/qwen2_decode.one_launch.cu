// One launch computes the whole decode step. A block computes all layers of one sequence, and intermediate results stay
// in shared memory. Blocks do not share data, so barriers of the block are enough.
#include <cuda_runtime.h>

#include "llmk/reduce.cuh"

struct Model {
    const float *table, *norm_1, *qkv, *bias, *out, *norm_2, *gate_up, *down, *last_norm;
    float *k_cache, *v_cache;
    int layers, vocabulary, c, heads, kv_heads, d, f, pages, page_size;
    float eps, theta;
};

// Computes y = weight x (+ bias), or y += weight x if `more`. One warp computes one row.
__device__ void multiply(const float* weight, const float* x, float* y, int rows, int columns, const float* bias,
                         bool more) {
    for (int n = threadIdx.x / 32; n < rows; n += blockDim.x / 32) {
        float sum = 0;
        for (int k = threadIdx.x % 32; k < columns; k += 32) sum = fmaf(weight[n * columns + k], x[k], sum);
        sum = llmk::warp_sum(sum);
        if (threadIdx.x % 32 == 0) y[n] = sum + (bias != nullptr ? bias[n] : 0.0f) + (more ? y[n] : 0.0f);
    }
    __syncthreads();
}

// Every warp computes the whole sum of squares, so warps need not exchange it.
__device__ void norm(const float* x, const float* weight, float* y, int c, float eps) {
    float squares = 0;
    for (int i = threadIdx.x % 32; i < c; i += 32) squares = fmaf(x[i], x[i], squares);
    const float root = sqrtf(llmk::warp_sum(squares) / c + eps);
    for (int i = threadIdx.x; i < c; i += blockDim.x) y[i] = x[i] / root * weight[i];
    __syncthreads();
}

__global__ void whole_step(Model m, const int* ids, const int* lengths, const int* tables, float* logits,
                           int max_pages) {
    extern __shared__ float x[];
    const int rows = (m.heads + 2 * m.kv_heads) * m.d, group = m.heads / m.kv_heads, keys = lengths[blockIdx.x];
    float *y = x + m.c, *qkv = y + m.c, *attended = qkv + rows, *gates = attended + m.heads * m.d;
    tables += blockIdx.x * max_pages;
    for (int i = threadIdx.x; i < m.c; i += blockDim.x) x[i] = m.table[ids[blockIdx.x] * m.c + i];
    __syncthreads();
    for (int layer = 0; layer < m.layers; ++layer) {
        norm(x, m.norm_1 + layer * m.c, y, m.c, m.eps);
        multiply(m.qkv + layer * rows * m.c, y, qkv, rows, m.c, m.bias + layer * rows, false);
        const int half = m.d / 2;
        for (int i = threadIdx.x; i < (m.heads + m.kv_heads) * half; i += blockDim.x) {
            float* pair = qkv + i / half * m.d + i % half;
            float sine, cosine;
            sincosf((keys - 1) * powf(m.theta, -static_cast<float>(i % half) / half), &sine, &cosine);
            const float a = pair[0], b = pair[half];
            pair[0] = a * cosine - b * sine;
            pair[half] = a * sine + b * cosine;
        }
        __syncthreads();
        const int size = m.kv_heads * m.page_size * m.d;  // elements of a page
        float *k_cache = m.k_cache + layer * m.pages * size, *v_cache = m.v_cache + layer * m.pages * size;
        const auto place = [&](int key, int kv_head) {
            return tables[key / m.page_size] * size + (kv_head * m.page_size + key % m.page_size) * m.d;
        };
        for (int i = threadIdx.x; i < m.kv_heads * m.d; i += blockDim.x) {
            k_cache[place(keys - 1, i / m.d) + i % m.d] = qkv[m.heads * m.d + i];
            v_cache[place(keys - 1, i / m.d) + i % m.d] = qkv[(m.heads + m.kv_heads) * m.d + i];
        }
        __syncthreads();
        for (int i = threadIdx.x; i < m.heads * m.d; i += blockDim.x) {  // each iteration computes one output channel
            const int head = i / m.d, kv_head = head / group;
            float largest = -INFINITY, sum = 0, out = 0;
            for (int pass = 0; pass < 2; ++pass) {
                for (int key = 0; key < keys; ++key) {
                    float score = 0;
                    for (int j = 0; j < m.d; ++j) score += qkv[head * m.d + j] * k_cache[place(key, kv_head) + j];
                    score /= sqrtf(m.d);
                    if (pass == 0) {
                        largest = fmaxf(largest, score);
                    } else {
                        sum += expf(score - largest);
                        out += expf(score - largest) * v_cache[place(key, kv_head) + i % m.d];
                    }
                }
            }
            attended[i] = out / sum;
        }
        __syncthreads();
        multiply(m.out + layer * m.c * m.heads * m.d, attended, x, m.c, m.heads * m.d, nullptr, true);
        norm(x, m.norm_2 + layer * m.c, y, m.c, m.eps);
        multiply(m.gate_up + layer * 2 * m.f * m.c, y, gates, 2 * m.f, m.c, nullptr, false);
        for (int i = threadIdx.x; i < m.f; i += blockDim.x) gates[i] *= gates[m.f + i] / (1 + expf(-gates[i]));
        __syncthreads();
        multiply(m.down + layer * m.c * m.f, gates, x, m.c, m.f, nullptr, true);
    }
    norm(x, m.last_norm, y, m.c, m.eps);
    multiply(m.table, y, logits + blockIdx.x * m.vocabulary, m.vocabulary, m.c, nullptr, false);
}

extern "C" void qwen2_decode(const int* ids, const int* lengths, const int* block_tables, const float* table,
                             const float* norm_1, const float* qkv_weight, const float* qkv_bias,
                             const float* out_weight, const float* norm_2, const float* gate_up_weight,
                             const float* down_weight, const float* last_norm, float* k_cache, float* v_cache,
                             float* logits, float* work, int batch, int layers, int vocabulary, int hidden, int heads,
                             int kv_heads, int head_dim, int feed_forward, int pages, int page_size, int max_pages,
                             float eps, float theta, cudaStream_t stream) {
    if (batch == 0) return;
    const Model m{table,     norm_1,       qkv_weight, qkv_bias,  out_weight, norm_2, gate_up_weight, down_weight,
                  last_norm, k_cache,      v_cache,    layers,    vocabulary, hidden, heads,          kv_heads,
                  head_dim,  feed_forward, pages,      page_size, eps,        theta};
    const int floats = 2 * hidden + 2 * (heads + kv_heads) * head_dim + 2 * feed_forward;
    whole_step<<<batch, 256, floats * sizeof(float), stream>>>(m, ids, lengths, block_tables, logits, max_pages);
}
