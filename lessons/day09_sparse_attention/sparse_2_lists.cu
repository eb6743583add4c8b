// Version 2: walk over a list of keys. Keys that are not in the list are neither read nor computed.
//
//   q, out: [query_len, kDim]     k, v: [key_len, kDim]
//   offsets: [query_len + 1]      indices: query i sees the keys indices[offsets[i]] ... indices[offsets[i + 1] - 1]
#include <cuda_runtime.h>

#include <cmath>

constexpr int kDim = 32;

__global__ void attend(const float* q, const float* k, const float* v, const int* offsets, const int* indices,
                       float* out, int query_len, int key_len, float scale) {
    const int query = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (query >= query_len) return;
    const float q_lane = q[query * kDim + lane];
    float m = -INFINITY, l = 0, o = 0;
    for (int e = offsets[query]; e < offsets[query + 1]; ++e) {
        const int key = indices[e];
        if (key < 0 || key >= key_len) continue;  // no such key; all lanes have the same `key`, so they do not diverge
        float s = q_lane * k[key * kDim + lane];
        for (int step = 16; step > 0; step /= 2) s += __shfl_xor_sync(0xffffffff, s, step);
        s *= scale;
        const float new_m = fmaxf(m, s);
        const float correction = expf(m - new_m), p = expf(s - new_m);
        m = new_m;
        l = l * correction + p;
        o = o * correction + p * v[key * kDim + lane];
    }
    out[query * kDim + lane] = l > 0 ? o / l : 0.0f;  // an empty list gives zeros
}

extern "C" void attention(const float* q, const float* k, const float* v, const int* offsets, const int* indices,
                          float* out, int query_len, int key_len, float scale, cudaStream_t stream) {
    if (query_len == 0) return;
    attend<<<(query_len + 3) / 4, 128, 0, stream>>>(q, k, v, offsets, indices, out, query_len, key_len, scale);
}
