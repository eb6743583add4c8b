// Wrong: the results are correct, but N x M scores are allocated, written and read again.
#include <cuda_runtime.h>

#include <cmath>

__global__ void scores_of(const float* q, const float* k, float* scores, int query_len, int key_len, int head_dim,
                          float scale, bool causal) {
    const int key = blockIdx.x * blockDim.x + threadIdx.x;
    const int query = blockIdx.y;
    const size_t head = blockIdx.z;
    if (key >= key_len) return;
    float sum = 0;
    for (int d = 0; d < head_dim; ++d) {
        sum += q[(head * query_len + query) * head_dim + d] * k[(head * key_len + key) * head_dim + d];
    }
    const bool visible = !causal || key <= query + key_len - query_len;
    scores[(head * query_len + query) * key_len + key] = visible ? sum * scale : -INFINITY;
}

__global__ void weighted(const float* scores, const float* v, float* out, int query_len, int key_len, int head_dim) {
    const int query = blockIdx.x;
    const size_t head = blockIdx.y;
    const float* row = scores + (head * query_len + query) * key_len;
    float m = -INFINITY, l = 0, o = 0;
    for (int j = 0; j < key_len; ++j) m = fmaxf(m, row[j]);
    for (int j = 0; j < key_len; ++j) {
        const float p = m == -INFINITY ? 0.0f : expf(row[j] - m);
        l += p;
        o += p * v[(head * key_len + j) * head_dim + threadIdx.x];
    }
    out[(head * query_len + query) * head_dim + threadIdx.x] = l > 0 ? o / l : 0.0f;
}

extern "C" void flash_attention(const float* q, const float* k, const float* v, float* out, int batch, int heads,
                                int query_len, int key_len, int head_dim, float scale, bool causal,
                                cudaStream_t stream) {
    if (batch == 0 || heads == 0 || query_len == 0 || head_dim == 0) return;
    const dim3 keys((key_len + 127) / 128, query_len, batch * heads), queries(query_len, batch * heads);
    float* scores = nullptr;
    const size_t bytes = sizeof(float) * batch * heads * query_len * key_len;
    if (key_len > 0) {
        cudaMallocAsync(reinterpret_cast<void**>(&scores), bytes, stream);
        scores_of<<<keys, 128, 0, stream>>>(q, k, scores, query_len, key_len, head_dim, scale, causal);
    }
    weighted<<<queries, head_dim, 0, stream>>>(scores, v, out, query_len, key_len, head_dim);
    if (key_len > 0) cudaFreeAsync(scores, stream);
}
