// Wrong: two kernels. The first one normalizes and writes the rows to global memory, the second one reads them and
// multiplies
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

template <typename T>
struct Projection {
    const T* weight;
    const T* bias;
    T* out;
    int features;
};

template <typename T>
__global__ void norm(const T* x, const T* norm_weight, float* normed, int inner, float eps) {
    x += (size_t)blockIdx.x * inner;
    float square = 0;
    for (int k = threadIdx.x; k < inner; k += 32) square += (float)x[k] * (float)x[k];
    for (int d = 16; d > 0; d /= 2) square += __shfl_xor_sync(0xffffffffu, square, d);
    const float factor = rsqrtf(square / max(inner, 1) + eps);
    for (int k = threadIdx.x; k < inner; k += 32) {
        normed[(size_t)blockIdx.x * inner + k] = (float)x[k] * factor * (float)norm_weight[k];
    }
}

template <typename T>
__global__ void products(const float* normed, Projection<T> q, Projection<T> k, Projection<T> v, int inner) {
    const Projection<T> own = blockIdx.z == 0 ? q : blockIdx.z == 1 ? k : v;
    const int feature = blockIdx.x, row = blockIdx.y;
    if (feature >= own.features) return;
    float sum = 0;
    for (int c = threadIdx.x; c < inner; c += 32) {
        sum += normed[(size_t)row * inner + c] * (float)own.weight[(size_t)feature * inner + c];
    }
    for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
    if (threadIdx.x == 0) own.out[(size_t)row * own.features + feature] = T(sum + (float)own.bias[feature]);
}

template <typename T>
void rms_norm_qkv(const T* x, const T* norm_weight, Projection<T> q, Projection<T> k, Projection<T> v, int rows,
                  int inner, float eps, cudaStream_t stream) {
    if (rows == 0) return;
    float* normed = nullptr;
    cudaMallocAsync(reinterpret_cast<void**>(&normed), sizeof(float) * (rows * inner + 1), stream);
    norm<<<rows, 32, 0, stream>>>(x, norm_weight, normed, inner, eps);
    products<<<dim3(max(q.features, k.features), rows, 3), 32, 0, stream>>>(normed, q, k, v, inner);
    cudaFreeAsync(normed, stream);
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
