// Version 1: dense attention with a boolean mask. It visits every key; a masked key gets the score -infinity.
//
//   q, out: [query_len, kDim]     k, v: [key_len, kDim]     mask: [query_len, key_len]
#include <cuda_runtime.h>

#include <cmath>

constexpr int kDim = 32;

__global__ void attend(const float* q, const float* k, const float* v, const bool* mask, float* out, int query_len,
                       int key_len, float scale) {
    const int query = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (query >= query_len) return;
    const float q_lane = q[query * kDim + lane];
    float m = -INFINITY, l = 0, o = 0;
    for (int key = 0; key < key_len; ++key) {
        float s = q_lane * k[key * kDim + lane];
        for (int step = 16; step > 0; step /= 2) s += __shfl_xor_sync(0xffffffff, s, step);
        s = mask[static_cast<long long>(query) * key_len + key] ? s * scale : -INFINITY;
        const float new_m = fmaxf(m, s), base = new_m == -INFINITY ? 0.0f : new_m;
        const float correction = expf(m - base), p = expf(s - base);
        m = new_m;
        l = l * correction + p;
        o = o * correction + p * v[key * kDim + lane];
    }
    out[query * kDim + lane] = l > 0 ? o / l : 0.0f;
}

extern "C" void attention(const float* q, const float* k, const float* v, const bool* mask, float* out, int query_len,
                          int key_len, float scale, cudaStream_t stream) {
    if (query_len == 0) return;
    attend<<<(query_len + 3) / 4, 128, 0, stream>>>(q, k, v, mask, out, query_len, key_len, scale);
}
