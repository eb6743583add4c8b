// Version 2: 16 bits in memory, f32 in registers. Only the inputs, by the caller, and the output are rounded.
//
//   q, out: [query_len, kDim]     k, v: [key_len, kDim]
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>

constexpr int kDim = 64;

template <typename T>
__global__ void attend(const T* q, const T* k, const T* v, T* out, int query_len, int key_len, float scale) {
    const int query = blockIdx.x * blockDim.x + threadIdx.x;
    if (query >= query_len) return;
    float m = -INFINITY, l = 0, o[kDim] = {};
    for (int j = 0; j < key_len; ++j) {
        float dot = 0;
        for (int d = 0; d < kDim; ++d) {
            dot += static_cast<float>(q[query * kDim + d]) * static_cast<float>(k[j * kDim + d]);
        }
        const float score = dot * scale, new_m = fmaxf(m, score);
        const float correction = expf(m - new_m), p = expf(score - new_m);
        m = new_m;
        l = l * correction + p;
        for (int d = 0; d < kDim; ++d) o[d] = o[d] * correction + p * static_cast<float>(v[j * kDim + d]);
    }
    for (int d = 0; d < kDim; ++d) out[query * kDim + d] = static_cast<T>(l > 0 ? o[d] / l : 0.0f);
}

extern "C" void attention_f16(const __half* q, const __half* k, const __half* v, __half* out, int query_len,
                              int key_len, float scale, cudaStream_t stream) {
    if (query_len == 0) return;
    attend<<<(query_len + 31) / 32, 32, 0, stream>>>(q, k, v, out, query_len, key_len, scale);
}

extern "C" void attention_bf16(const __nv_bfloat16* q, const __nv_bfloat16* k, const __nv_bfloat16* v,
                               __nv_bfloat16* out, int query_len, int key_len, float scale, cudaStream_t stream) {
    if (query_len == 0) return;
    attend<<<(query_len + 31) / 32, 32, 0, stream>>>(q, k, v, out, query_len, key_len, scale);
}
