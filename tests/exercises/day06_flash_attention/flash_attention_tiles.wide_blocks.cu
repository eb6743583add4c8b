// A block computes 256 queries. Two lanes share a query: each lane has every second float4 of q, k, v and out.
#include <cuda_runtime.h>

#include <cmath>

constexpr int kQueries = 256;
constexpr int kThreads = 2 * kQueries;
constexpr int kKeys = 64;

template <int DIM>
__global__ void __launch_bounds__(kThreads) attend(const float* q, const float* k, const float* v, float* out,
                                                   int query_len, int key_len, float scale, bool causal) {
    constexpr int kChunks = DIM / 8;  // float4s of a row that one lane has
    __shared__ float4 k_tile[kKeys][kChunks][2], v_tile[kKeys][kChunks][2];
    const int half = threadIdx.x % 2;
    const int query = blockIdx.x * kQueries + threadIdx.x / 2;
    const bool exists = query < query_len;
    const size_t head = blockIdx.y;
    float4 q_part[kChunks], o[kChunks];
    for (int c = 0; c < kChunks; ++c) {
        const size_t at = (head * query_len + query) * (2 * kChunks) + 2 * c + half;
        q_part[c] = exists ? reinterpret_cast<const float4*>(q)[at] : make_float4(0, 0, 0, 0);
        o[c] = make_float4(0, 0, 0, 0);
    }
    float m = -INFINITY, l = 0;
    for (int first = 0; first < key_len; first += kKeys) {
        const int keys = min(kKeys, key_len - first);
        const size_t start = (head * key_len + first) * (2 * kChunks);
        __syncthreads();
        for (int i = threadIdx.x; i < keys * 2 * kChunks; i += kThreads) {
            (&k_tile[0][0][0])[i] = reinterpret_cast<const float4*>(k)[start + i];
            (&v_tile[0][0][0])[i] = reinterpret_cast<const float4*>(v)[start + i];
        }
        __syncthreads();
        for (int j = 0; j < keys; ++j) {
            float s = 0;
            for (int c = 0; c < kChunks; ++c) {
                const float4 key = k_tile[j][c][half];
                s += q_part[c].x * key.x + q_part[c].y * key.y + q_part[c].z * key.z + q_part[c].w * key.w;
            }
            s = (s + __shfl_xor_sync(0xffffffff, s, 1)) * scale;
            if (causal && first + j > query + key_len - query_len) s = -INFINITY;
            const float new_m = fmaxf(m, s);
            const float base = new_m == -INFINITY ? 0 : new_m;
            const float correction = expf(m - base), p = expf(s - base);
            m = new_m;
            l = l * correction + p;
            for (int c = 0; c < kChunks; ++c) {
                const float4 value = v_tile[j][c][half];
                o[c].x = o[c].x * correction + p * value.x;
                o[c].y = o[c].y * correction + p * value.y;
                o[c].z = o[c].z * correction + p * value.z;
                o[c].w = o[c].w * correction + p * value.w;
            }
        }
    }
    if (!exists) return;
    const float inverse = l > 0 ? 1 / l : 0;
    for (int c = 0; c < kChunks; ++c) {
        reinterpret_cast<float4*>(out)[(head * query_len + query) * (2 * kChunks) + 2 * c + half] =
            make_float4(o[c].x * inverse, o[c].y * inverse, o[c].z * inverse, o[c].w * inverse);
    }
}
