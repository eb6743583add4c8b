// Grouped-query attention in f32. A block computes one query of one head, and each thread one column.
#include <cuda_runtime.h>

#include <cmath>

__global__ void attend(const float* q, const float* k, const float* v, float* out, int heads, int kv_heads,
                       int query_len, int key_len, int head_dim, float scale, bool causal) {
    __shared__ float sums[4];
    const size_t row = blockIdx.x;
    const int d = threadIdx.x, query = row % query_len, head = row / query_len % heads;
    const size_t b = row / query_len / heads;
    const size_t cache = (b * kv_heads + head / (heads / kv_heads)) * key_len * head_dim;
    const int visible = causal ? query + key_len - query_len + 1 : key_len;
    const bool exists = d < head_dim;
    const float mine = exists ? q[row * head_dim + d] * scale : 0.0f;
    float m = -INFINITY, l = 0, o = 0;
    for (int key = 0; key < visible; ++key) {
        float score = exists ? mine * k[cache + static_cast<size_t>(key) * head_dim + d] : 0.0f;
        for (int reach = 16; reach > 0; reach /= 2) score += __shfl_xor_sync(0xffffffffu, score, reach);
        __syncthreads();
        if (d % 32 == 0) sums[d / 32] = score;
        __syncthreads();
        score = 0;
        for (int w = 0; w < blockDim.x / 32; ++w) score += sums[w];
        const float new_m = fmaxf(m, score);
        const float correction = expf(m - new_m), p = expf(score - new_m);
        m = new_m;
        l = l * correction + p;
        o = o * correction + (exists ? p * v[cache + static_cast<size_t>(key) * head_dim + d] : 0.0f);
    }
    if (exists) out[row * head_dim + d] = l > 0 ? o / l : 0.0f;
}

extern "C" void gqa_debug(const float* q, const float* k, const float* v, float* out, int batch, int heads,
                          int kv_heads, int query_len, int key_len, int head_dim, float scale, bool causal,
                          cudaStream_t stream) {
    const long long rows = static_cast<long long>(batch) * heads * query_len;
    if (rows == 0 || head_dim == 0) return;
    attend<<<rows, (head_dim + 31) / 32 * 32, 0, stream>>>(q, k, v, out, heads, kv_heads, query_len, key_len, head_dim,
                                                           scale, causal);
}
