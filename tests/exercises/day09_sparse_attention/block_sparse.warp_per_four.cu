// A different design: a warp computes four queries, and its lanes share head_dim. Shared memory holds the current block
// of keys and values.
#include <cuda_runtime.h>

#include <cmath>

__global__ void attend(const float* q, const float* k, const float* v, const int* offsets, const int* indices,
                       float* out, int query_len, int key_len, int head_dim, int block, bool causal, float scale) {
    extern __shared__ float tile[];  // [2][block][head_dim]
    float* v_tile = tile + block * head_dim;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, threads = blockDim.x;
    const long long head = blockIdx.y;
    float m[4], l[4], o[4][2] = {}, q_lane[4][2] = {};
    for (int i = 0; i < 4; ++i) {
        m[i] = -INFINITY, l[i] = 0;
        const int query = blockIdx.x * block + warp * 4 + i;
        for (int c = 0; c * 32 + lane < head_dim && query < query_len; ++c) {
            q_lane[i][c] = q[(head * query_len + query) * head_dim + c * 32 + lane];
        }
    }
    for (int e = offsets[blockIdx.x]; e < offsets[blockIdx.x + 1]; ++e) {
        const int first = indices[e] * block;
        const int end = causal ? min(key_len, static_cast<int>(blockIdx.x + 1) * block + key_len - query_len) : key_len;
        if (first >= end) continue;
        __syncthreads();
        for (int i = threadIdx.x; i < block * head_dim; i += threads) {
            const bool exists = first + i / head_dim < key_len;
            tile[i] = exists ? k[(head * key_len + first) * head_dim + i] : 0.0f;
            v_tile[i] = exists ? v[(head * key_len + first) * head_dim + i] : 0.0f;
        }
        __syncthreads();
        for (int i = 0; i < 4; ++i) {
            const int query = blockIdx.x * block + warp * 4 + i;
            if (query >= query_len) break;
            const int visible = causal ? min(query + key_len - query_len + 1, key_len) : key_len;
            for (int j = 0; j < block && first + j < visible; ++j) {
                float s = 0;
                for (int c = 0; c * 32 + lane < head_dim; ++c) s += q_lane[i][c] * tile[j * head_dim + c * 32 + lane];
                for (int step = 16; step > 0; step /= 2) s += __shfl_xor_sync(0xffffffff, s, step);
                s *= scale;
                const float new_m = fmaxf(m[i], s), correction = expf(m[i] - new_m), p = expf(s - new_m);
                m[i] = new_m;
                l[i] = l[i] * correction + p;
                for (int c = 0; c * 32 + lane < head_dim; ++c) {
                    o[i][c] = o[i][c] * correction + p * v_tile[j * head_dim + c * 32 + lane];
                }
            }
        }
    }
    for (int i = 0; i < 4; ++i) {
        const int query = blockIdx.x * block + warp * 4 + i;
        if (query >= query_len) break;
        for (int c = 0; c * 32 + lane < head_dim; ++c) {
            out[(head * query_len + query) * head_dim + c * 32 + lane] = l[i] > 0 ? o[i][c] / l[i] : 0.0f;
        }
    }
}

extern "C" void block_sparse(const float* q, const float* k, const float* v, const int* offsets, const int* indices,
                             float* out, int batch, int heads, int query_len, int key_len, int head_dim, int block,
                             bool causal, float scale, cudaStream_t stream) {
    if (batch == 0 || heads == 0 || query_len == 0) return;
    const dim3 grid((query_len + block - 1) / block, batch * heads);
    attend<<<grid, block / 4 * 32, sizeof(float) * 2 * block * head_dim, stream>>>(
        q, k, v, offsets, indices, out, query_len, key_len, head_dim, block, causal, scale);
}
