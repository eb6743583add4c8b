// RMSNorm and the projections to queries, keys and values in one kernel, for 1 to 16 rows, f16 or bf16 in, f32 sums:
// q = normed q_weight^T + q_bias with normed = x / sqrt(mean(x^2) + eps) * norm_weight; k and v likewise.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

// weight: [features, in_features]   bias: [features]   out: [rows, features]
template <typename T>
struct Projection {
    const T* weight;
    const T* bias;
    T* out;
    int features;
};

// TODO: a kernel, template <typename T>, for the tiles of all three projections. Start from your day 4 linear_decode.

template <typename T>
void rms_norm_qkv(const T* x, const T* norm_weight, Projection<T> q, Projection<T> k, Projection<T> v, int rows,
                  int in_features, float eps, cudaStream_t stream) {
    // TODO: launch it, unless there is nothing to do.
}

// x: [rows, in_features]   norm_weight: [in_features]   q_weight: [q_features, in_features]   q_bias: [q_features]
// q: [rows, q_features]   k_weight, v_weight: [kv_features, in_features]   k_bias, v_bias: [kv_features]
// k, v: [rows, kv_features]
extern "C" void rms_norm_qkv_f16(const __half* x, const __half* norm_weight, const __half* q_weight,
                                 const __half* k_weight, const __half* v_weight, const __half* q_bias,
                                 const __half* k_bias, const __half* v_bias, __half* q, __half* k, __half* v, int rows,
                                 int in_features, int q_features, int kv_features, float eps, cudaStream_t stream) {
    rms_norm_qkv<__half>(x, norm_weight, {q_weight, q_bias, q, q_features}, {k_weight, k_bias, k, kv_features},
                         {v_weight, v_bias, v, kv_features}, rows, in_features, eps, stream);
}

extern "C" void rms_norm_qkv_bf16(const __nv_bfloat16* x, const __nv_bfloat16* norm_weight,
                                  const __nv_bfloat16* q_weight, const __nv_bfloat16* k_weight,
                                  const __nv_bfloat16* v_weight, const __nv_bfloat16* q_bias,
                                  const __nv_bfloat16* k_bias, const __nv_bfloat16* v_bias, __nv_bfloat16* q,
                                  __nv_bfloat16* k, __nv_bfloat16* v, int rows, int in_features, int q_features,
                                  int kv_features, float eps, cudaStream_t stream) {
    rms_norm_qkv<__nv_bfloat16>(x, norm_weight, {q_weight, q_bias, q, q_features}, {k_weight, k_bias, k, kv_features},
                                {v_weight, v_bias, v, kv_features}, rows, in_features, eps, stream);
}
