// Correct alternative: 64 rows x 64 features per block; a thread computes 16 outputs of one row, and its sums start
// from the bias
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

__device__ float gelu(float v) { return 0.5f * v * erfcf(-0.70710678f * v); }

// x: [rows, inner]   weight: [features, inner]   bias: [features]   out: [rows, features]
template <typename T>
__global__ void fused_kernel(const T* x, const T* weight, const T* bias, T* out, int rows, int inner, int features) {
    __shared__ float a[64][33], b[64][33], finished[64][65];
    const int row0 = blockIdx.y * 64, feature0 = blockIdx.x * 64, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int own_row = warp % 2 * 32 + lane, own_features = warp / 2 * 16;
    float sum[16];
    for (int j = 0; j < 16; ++j) {
        const int feature = feature0 + own_features + j;
        sum[j] = feature < features ? (float)bias[feature] : 0.0f;
    }
    for (int k0 = 0; k0 < inner; k0 += 32) {
        for (int i = warp; i < 64; i += 8) {
            const int row = row0 + i, feature = feature0 + i, k = k0 + lane;
            a[i][lane] = row < rows && k < inner ? (float)x[(size_t)row * inner + k] : 0.0f;
            b[i][lane] = feature < features && k < inner ? (float)weight[(size_t)feature * inner + k] : 0.0f;
        }
        __syncthreads();
        for (int k = 0; k < 32; ++k) {
            for (int j = 0; j < 16; ++j) sum[j] += a[own_row][k] * b[own_features + j][k];
        }
        __syncthreads();
    }
    for (int j = 0; j < 16; ++j) finished[own_row][own_features + j] = gelu(sum[j]);
    __syncthreads();
    for (int i = threadIdx.x; i < 64 * 64; i += 256) {
        const int row = row0 + i / 64, feature = feature0 + i % 64;
        if (row < rows && feature < features) out[(size_t)row * features + feature] = T(finished[i / 64][i % 64]);
    }
}

template <typename T>
void linear_gelu(const T* x, const T* weight, const T* bias, T* out, int rows, int inner, int features,
                 cudaStream_t stream) {
    if (rows == 0 || features == 0) return;
    const dim3 grid((features + 63) / 64, (rows + 63) / 64);
    fused_kernel<<<grid, 256, 0, stream>>>(x, weight, bias, out, rows, inner, features);
}
