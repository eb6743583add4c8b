// Correct alternative: WMMA stores the scores to shared memory, where eight threads compute the softmax of one query
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mma.h>
#include <cmath>

using namespace nvcuda;

// q: [heads, n, d]   k: [heads, m, d]   out: [heads, n, m]
__global__ void weights_kernel(const __half* q, const __half* k, __half* out, int n, int m, int d, float scale,
                               bool causal) {
    constexpr int ld = 136;
    __shared__ __align__(32) __half q_tile[32 * ld], k_tile[64 * ld];
    __shared__ __align__(32) float scores[32 * 68];
    const int query0 = blockIdx.x * 32, warp = threadIdx.x / 32, depth = (d + 15) / 16 * 16;
    q += (size_t)blockIdx.y * n * d;
    k += (size_t)blockIdx.y * m * d;
    out += (size_t)blockIdx.y * n * m;
    for (int i = threadIdx.x; i < 32 * depth; i += 256) {
        const int row = i / depth, c = i % depth;
        q_tile[row * ld + c] = query0 + row < n && c < d ? q[(size_t)(query0 + row) * d + c] : __half(0.0f);
    }
    // Eight neighboring threads compute the softmax of one query.
    const int row = threadIdx.x / 8, part = threadIdx.x % 8, query = query0 + row;
    const int seen = causal ? max(0, min(m, query + 1 + m - n)) : m;
    float maximum = -1e30f, sum = 0.0f;
    __shared__ float maxima[32], totals[32];
    __shared__ int seen_keys[32];
    for (int walk = 0; walk < 2; ++walk) {
        for (int key0 = 0; key0 < m; key0 += 64) {
            for (int i = threadIdx.x; i < 64 * depth; i += 256) {
                const int key = i / depth, c = i % depth;
                k_tile[key * ld + c] = key0 + key < m && c < d ? k[(size_t)(key0 + key) * d + c] : __half(0.0f);
            }
            __syncthreads();
            wmma::fragment<wmma::accumulator, 16, 16, 16, float> fragment;
            wmma::fill_fragment(fragment, 0.0f);
            for (int c = 0; c < depth; c += 16) {
                wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> a;
                wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> b;
                wmma::load_matrix_sync(a, q_tile + warp / 4 * 16 * ld + c, ld);
                wmma::load_matrix_sync(b, k_tile + warp % 4 * 16 * ld + c, ld);
                wmma::mma_sync(fragment, a, b, fragment);
            }
            wmma::store_matrix_sync(scores + warp / 4 * 16 * 68 + warp % 4 * 16, fragment, 68, wmma::mem_row_major);
            __syncthreads();
            for (int j = part; walk == 0 && j < 64; j += 8) {
                const float score = key0 + j < seen ? scores[row * 68 + j] * scale : -INFINITY;
                const float larger = fmaxf(maximum, score);
                sum = sum * __expf(maximum - larger) + __expf(score - larger);
                maximum = larger;
            }
            for (int i = threadIdx.x; walk == 1 && i < 32 * 64; i += 256) {
                const int r = i / 64, key = key0 + i % 64;
                if (query0 + r >= n || key >= m) continue;
                const float score = scores[r * 68 + i % 64] * scale;
                const float weight = key < seen_keys[r] ? __expf(score - maxima[r]) / totals[r] : 0.0f;
                out[(size_t)(query0 + r) * m + key] = __float2half(weight);
            }
            __syncthreads();
        }
        if (walk == 0) {
            for (int distance = 4; distance > 0; distance /= 2) {
                const float other_maximum = __shfl_xor_sync(0xffffffffu, maximum, distance);
                const float other_sum = __shfl_xor_sync(0xffffffffu, sum, distance);
                const float larger = fmaxf(maximum, other_maximum);
                sum = sum * __expf(maximum - larger) + other_sum * __expf(other_maximum - larger);
                maximum = larger;
            }
            if (part == 0) maxima[row] = maximum, totals[row] = sum, seen_keys[row] = seen;
        }
    }
}

extern "C" void scores_softmax(const __half* q, const __half* k, __half* out, int batch, int heads, int query_len,
                               int key_len, int head_dim, float scale, bool causal, cudaStream_t stream) {
    if (batch == 0 || heads == 0 || query_len == 0 || key_len == 0) return;
    const dim3 grid((query_len + 32 - 1) / 32, batch * heads);
    weights_kernel<<<grid, 256, 0, stream>>>(q, k, out, query_len, key_len, head_dim, scale, causal);
}
