// A different design: one thread per query and 32 queries per block, without tensor cores. Shared memory holds 16 keys
// at a time.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>

__device__ __forceinline__ void put(__half* p, float x) { *p = __float2half(x); }
__device__ __forceinline__ void put(__nv_bfloat16* p, float x) { *p = __float2bfloat16(x); }

constexpr int kQueries = 32, kKeys = 16, kDim = 128;

template <typename T>
__global__ void attend(const T* q, const T* k, const T* v, T* out, int query_len, int key_len, int head_dim, int window,
                       float scale) {
    __shared__ float k_tile[kKeys][kDim];
    __shared__ float v_tile[kKeys][kDim];
    __shared__ float q_tile[kQueries][kDim + 1];
    const int first_query = blockIdx.x * kQueries, query = first_query + threadIdx.x;
    const long long head = blockIdx.y;
    const int offset = key_len - query_len;
    const int end = min(query + offset + 1, key_len), begin = max(query + offset + 1 - window, 0);
    const int block_end = min(first_query + kQueries + offset, key_len);
    const int block_begin = max(first_query + offset + 1 - window, 0);
    for (int i = threadIdx.x; i < kQueries * head_dim; i += kQueries) {
        const int r = i / head_dim;
        q_tile[r][i % head_dim] = first_query + r < query_len
                                      ? static_cast<float>(q[(head * query_len + first_query) * head_dim + i]) * scale
                                      : 0.0f;
    }
    float m = -INFINITY, l = 0, o[kDim];
    for (int d = 0; d < head_dim; ++d) o[d] = 0;
    for (int first = block_begin; first < block_end; first += kKeys) {
        __syncthreads();
        for (int i = threadIdx.x; i < kKeys * head_dim; i += kQueries) {
            const int r = i / head_dim;
            const long long from = (head * key_len + first) * head_dim + i;
            k_tile[r][i % head_dim] = first + r < key_len ? static_cast<float>(k[from]) : 0.0f;
            v_tile[r][i % head_dim] = first + r < key_len ? static_cast<float>(v[from]) : 0.0f;
        }
        __syncthreads();
        for (int j = max(begin - first, 0); j < kKeys && first + j < end; ++j) {
            float s = 0;
            for (int d = 0; d < head_dim; ++d) s += q_tile[threadIdx.x][d] * k_tile[j][d];
            const float new_m = fmaxf(m, s), p = expf(s - new_m);
            if (new_m > m) {
                const float correction = expf(m - new_m);
                m = new_m;
                l *= correction;
                for (int d = 0; d < head_dim; ++d) o[d] *= correction;
            }
            l += p;
            for (int d = 0; d < head_dim; ++d) o[d] += p * v_tile[j][d];
        }
    }
    __syncthreads();
    for (int d = 0; d < head_dim; ++d) q_tile[threadIdx.x][d] = l > 0 ? o[d] / l : 0.0f;
    __syncthreads();
    for (int i = threadIdx.x; i < kQueries * head_dim; i += kQueries) {
        const int r = i / head_dim;
        if (first_query + r < query_len)
            put(out + (head * query_len + first_query) * head_dim + i, q_tile[r][i % head_dim]);
    }
}

template <typename T>
void sliding_window(const T* q, const T* k, const T* v, T* out, int batch, int heads, int query_len, int key_len,
                    int head_dim, int window, float scale, cudaStream_t stream) {
    if (batch == 0 || heads == 0 || query_len == 0) return;
    attend<<<dim3((query_len + kQueries - 1) / kQueries, batch * heads), kQueries, 0, stream>>>(
        q, k, v, out, query_len, key_len, head_dim, window, scale);
}
