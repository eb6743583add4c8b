// Correct alternative: multiply-adds without tensor cores, one warp per query
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <cmath>

// Each of the 32 warps has one query. Shared memory holds 32 keys at a time, one for each lane.
// q: [heads, n, d]   k: [heads, m, d]   out: [heads, n, m]
__global__ void weights_kernel(const __half* q, const __half* k, __half* out, int n, int m, int d, float scale,
                               bool causal) {
    __shared__ float q_rows[32][129], k_tile[32][129];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, query = blockIdx.x * 32 + warp;
    q += (size_t)blockIdx.y * n * d;
    k += (size_t)blockIdx.y * m * d;
    out += (size_t)blockIdx.y * n * m;
    for (int c = lane; c < d; c += 32)
        q_rows[warp][c] = query < n ? __half2float(q[(size_t)query * d + c]) * scale : 0.0f;
    const int seen = query >= n ? 0 : causal ? max(0, min(m, query + 1 + m - n)) : m;
    float maximum = -1e30f, sum = 0.0f;
    for (int walk = 0; walk < 2; ++walk) {
        for (int key0 = 0; key0 < m; key0 += 32) {
            __syncthreads();
            for (int key = warp; key < 32; key += 32) {
                for (int c = lane; c < d; c += 32) {
                    k_tile[key][c] = key0 + key < m ? __half2float(k[(size_t)(key0 + key) * d + c]) : 0.0f;
                }
            }
            __syncthreads();
            float score = 0.0f;
            for (int c = 0; c < d; ++c) score += q_rows[warp][c] * k_tile[lane][c];
            {
                const int key = key0 + lane;
                const float value = key < seen ? score : -INFINITY;
                if (walk == 0) {
                    const float larger = fmaxf(maximum, value);
                    sum = sum * expf(maximum - larger) + expf(value - larger);
                    maximum = larger;
                } else if (query < n && key < m) {
                    out[(size_t)query * m + key] = __float2half(key < seen ? expf(value - maximum) / sum : 0.0f);
                }
            }
        }
        if (walk == 1) return;
        for (int distance = 16; distance > 0; distance /= 2) {
            const float other_maximum = __shfl_xor_sync(0xffffffffu, maximum, distance);
            const float other_sum = __shfl_xor_sync(0xffffffffu, sum, distance);
            const float larger = fmaxf(maximum, other_maximum);
            sum = sum * expf(maximum - larger) + other_sum * expf(other_maximum - larger);
            maximum = larger;
        }
    }
}

extern "C" void scores_softmax(const __half* q, const __half* k, __half* out, int batch, int heads, int query_len,
                               int key_len, int head_dim, float scale, bool causal, cudaStream_t stream) {
    if (batch == 0 || heads == 0 || query_len == 0 || key_len == 0) return;
    const dim3 grid((query_len + 31) / 32, batch * heads);
    weights_kernel<<<grid, 1024, 0, stream>>>(q, k, out, query_len, key_len, head_dim, scale, causal);
}
