// Version 1, everything in 16 bits: scores, maximum, exponentials, sums. One thread per query, one head.
//
//   q, out: [query_len, kDim]     k, v: [key_len, kDim]
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>

constexpr int kDim = 64;

// Computes like a 16-bit arithmetic unit: every result is rounded to the type of the operands.
template <typename T>
__device__ T rounded(float x) {
    return static_cast<T>(x);
}

template <typename T>
__global__ void attend(const T* q, const T* k, const T* v, T* out, int query_len, int key_len, float scale) {
    const int query = blockIdx.x * blockDim.x + threadIdx.x;
    if (query >= query_len) return;
    T m = rounded<T>(-INFINITY), l = rounded<T>(0), o[kDim];
    for (int d = 0; d < kDim; ++d) o[d] = rounded<T>(0);
    for (int j = 0; j < key_len; ++j) {
        T dot = rounded<T>(0);
        for (int d = 0; d < kDim; ++d) dot = __hfma(q[query * kDim + d], k[j * kDim + d], dot);
        const T score = __hmul(dot, rounded<T>(scale));
        const T new_m = __hmax(m, score);
        const T correction = hexp(__hsub(m, new_m)), p = hexp(__hsub(score, new_m));
        m = new_m;
        l = __hfma(l, correction, p);
        for (int d = 0; d < kDim; ++d) o[d] = __hfma(p, v[j * kDim + d], __hmul(o[d], correction));
    }
    for (int d = 0; d < kDim; ++d) out[query * kDim + d] = __hdiv(o[d], l);
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
