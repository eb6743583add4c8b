// Version 1, attention as it is written down: three kernels, and the N x M scores in global memory between them.
//
//   1. scores[i][j] = scale * q[i] . k[j]        2. each row of scores becomes its softmax        3. out = weights v
//
//   q, out: [batch * heads, query_len, head_dim]     k, v: [batch * heads, key_len, head_dim]
//   scores: [batch * heads, query_len, key_len], scratch memory
#include <cuda_runtime.h>

#include <cmath>

// One thread per score.
__global__ void scores_of(const float* q, const float* k, float* scores, int query_len, int key_len, int head_dim,
                          float scale, bool causal) {
    const int key = blockIdx.x * blockDim.x + threadIdx.x;
    const int query = blockIdx.y;
    const size_t head = blockIdx.z;
    if (key >= key_len) return;
    const float* q_row = q + (head * query_len + query) * head_dim;
    const float* k_row = k + (head * key_len + key) * head_dim;
    float sum = 0;
    for (int d = 0; d < head_dim; ++d) sum += q_row[d] * k_row[d];
    const bool visible = !causal || key <= query + key_len - query_len;
    scores[(head * query_len + query) * key_len + key] = visible ? sum * scale : -INFINITY;
}

__device__ float warp_max(float x) {
    for (int bit = 16; bit > 0; bit /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, bit));
    return x;
}

__device__ float warp_sum(float x) {
    for (int bit = 16; bit > 0; bit /= 2) x += __shfl_xor_sync(0xffffffff, x, bit);
    return x;
}

// One warp per row: its maximum, then the sum of exponentials, then the division.
__global__ void softmax_rows(float* scores, int key_len) {
    const int lane = threadIdx.x;
    float* row = scores + static_cast<size_t>(blockIdx.x) * key_len;
    float largest = -INFINITY;
    for (int j = lane; j < key_len; j += 32) largest = fmaxf(largest, row[j]);
    largest = warp_max(largest);
    if (largest == -INFINITY) largest = 0;  // the mask hides every key: all weights become zero
    float sum = 0;
    for (int j = lane; j < key_len; j += 32) sum += expf(row[j] - largest);
    sum = warp_sum(sum);
    for (int j = lane; j < key_len; j += 32) row[j] = sum > 0 ? expf(row[j] - largest) / sum : 0.0f;
}

// One thread per output element.
__global__ void weighted_values(const float* weights, const float* v, float* out, int query_len, int key_len,
                                int head_dim) {
    const int d = threadIdx.x;
    const int query = blockIdx.x;
    const size_t head = blockIdx.y;
    const float* row = weights + (head * query_len + query) * key_len;
    const float* values = v + head * key_len * head_dim;
    float sum = 0;
    for (int j = 0; j < key_len; ++j) sum += row[j] * values[static_cast<size_t>(j) * head_dim + d];
    out[(head * query_len + query) * head_dim + d] = sum;
}

extern "C" void attention(const float* q, const float* k, const float* v, float* scores, float* out, int heads,
                          int query_len, int key_len, int head_dim, float scale, bool causal, cudaStream_t stream) {
    if (heads == 0 || query_len == 0) return;
    if (key_len > 0) {
        const dim3 grid((key_len + 127) / 128, query_len, heads);
        scores_of<<<grid, 128, 0, stream>>>(q, k, scores, query_len, key_len, head_dim, scale, causal);
        softmax_rows<<<heads * query_len, 32, 0, stream>>>(scores, key_len);
    }
    weighted_values<<<dim3(query_len, heads), head_dim, 0, stream>>>(scores, v, out, query_len, key_len, head_dim);
}
