// Wrong: a warp computes one output, so that the weights are read again for each row of x
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

template <typename T>
__global__ void few_rows(const T* x, const T* weight, const T* bias, T* out, int inner, int features, bool has_bias) {
    const int feature = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32, row = blockIdx.y;
    if (feature >= features) return;
    float sum = 0;
    for (int k = lane; k < inner; k += 32) {
        sum += (float)x[(size_t)row * inner + k] * (float)weight[(size_t)feature * inner + k];
    }
    for (int d = 16; d > 0; d /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, d);
    if (lane == 0) out[(size_t)row * features + feature] = T(sum + (has_bias ? (float)bias[feature] : 0.0f));
}

template <typename T>
void linear_decode(const T* x, const T* weight, const T* bias, T* out, int rows, int inner, int features, bool has_bias,
                   cudaStream_t stream) {
    if (rows == 0 || features == 0) return;
    few_rows<<<dim3((features + 3) / 4, rows), 128, 0, stream>>>(x, weight, bias, out, inner, features, has_bias);
}
