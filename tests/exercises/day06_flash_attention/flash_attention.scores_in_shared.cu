// A block of 128 threads computes 32 queries. Scores and running sums are in shared memory, so any thread can compute
// any score or column. One thread computes the softmax of a row.
#include <cuda_runtime.h>

#include <cmath>

constexpr int kQueries = 32;
constexpr int kKeys = 16;
constexpr int kThreads = 128;
constexpr int kMaxDim = 128;

__global__ void attend(const float* q, const float* k, const float* v, float* out, int query_len, int key_len,
                       int head_dim, float scale, bool causal) {
    __shared__ float q_tile[kQueries][kMaxDim + 1], o_tile[kQueries][kMaxDim + 1];
    __shared__ float tile[kKeys][kMaxDim + 1];  // holds keys, later values
    __shared__ float s[kQueries][kKeys + 1], m[kQueries], l[kQueries], correction[kQueries];
    const int first_query = blockIdx.x * kQueries;
    const size_t head = blockIdx.y;
    const int rows = min(kQueries, query_len - first_query);
    for (int i = threadIdx.x; i < rows * head_dim; i += kThreads) {
        q_tile[i / head_dim][i % head_dim] = q[(head * query_len + first_query) * head_dim + i];
        o_tile[i / head_dim][i % head_dim] = 0;
    }
    for (int i = threadIdx.x; i < rows; i += kThreads) {
        m[i] = -INFINITY;
        l[i] = 0;
    }
    for (int first = 0; first < key_len; first += kKeys) {
        const int keys = min(kKeys, key_len - first);
        __syncthreads();
        for (int i = threadIdx.x; i < keys * head_dim; i += kThreads) {
            tile[i / head_dim][i % head_dim] = k[(head * key_len + first) * head_dim + i];
        }
        __syncthreads();
        for (int i = threadIdx.x; i < rows * keys; i += kThreads) {
            const int row = i / keys, key = i % keys;
            float sum = 0;
            for (int d = 0; d < head_dim; ++d) sum += q_tile[row][d] * tile[key][d];
            const bool visible = !causal || first + key - (key_len - query_len) <= first_query + row;
            s[row][key] = visible ? sum * scale : -INFINITY;
        }
        __syncthreads();
        for (int i = threadIdx.x; i < keys * head_dim; i += kThreads) {
            tile[i / head_dim][i % head_dim] = v[(head * key_len + first) * head_dim + i];
        }
        for (int row = threadIdx.x; row < rows; row += kThreads) {
            float top = m[row];
            for (int j = 0; j < keys; ++j) top = fmaxf(top, s[row][j]);
            correction[row] = 1;
            if (top > -INFINITY) {
                correction[row] = expf(m[row] - top);
                float sum = l[row] * correction[row];
                for (int j = 0; j < keys; ++j) sum += s[row][j] = expf(s[row][j] - top);
                m[row] = top;
                l[row] = sum;
            } else {
                for (int j = 0; j < keys; ++j) s[row][j] = 0;
            }
        }
        __syncthreads();
        for (int i = threadIdx.x; i < rows * head_dim; i += kThreads) {
            const int row = i / head_dim, d = i % head_dim;
            float sum = o_tile[row][d] * correction[row];
            for (int j = 0; j < keys; ++j) sum += s[row][j] * tile[j][d];
            o_tile[row][d] = sum;
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < rows * head_dim; i += kThreads) {
        const int row = i / head_dim;
        out[(head * query_len + first_query) * head_dim + i] = l[row] > 0 ? o_tile[row][i % head_dim] / l[row] : 0.0f;
    }
}

extern "C" void flash_attention(const float* q, const float* k, const float* v, float* out, int batch, int heads,
                                int query_len, int key_len, int head_dim, float scale, bool causal,
                                cudaStream_t stream) {
    if (batch == 0 || heads == 0 || query_len == 0 || head_dim == 0) return;
    const dim3 grid((query_len + kQueries - 1) / kQueries, batch * heads);
    attend<<<grid, kThreads, 0, stream>>>(q, k, v, out, query_len, key_len, head_dim, scale, causal);
}
