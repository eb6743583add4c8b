// Correct alternative: multiply-adds without tensor cores for all dtypes, 64 x 64 outputs per block, 4 x 4 per thread
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

__device__ void put(float* p, float x) { *p = x; }
__device__ void put(__half* p, float x) { *p = __float2half(x); }
__device__ void put(__nv_bfloat16* p, float x) { *p = __float2bfloat16(x); }
__device__ float gelu(float v) { return v * normcdff(v); }

// x: [rows, inner]   weight: [features, inner]   bias: [features]   out: [rows, features]
template <typename T>
__global__ void fused_kernel(const T* x, const T* weight, const T* bias, T* out, int rows, int inner, int features) {
    __shared__ float a[16][65], b[16][65];  // [k][row or feature], padded
    const int row0 = blockIdx.y * 64, feature0 = blockIdx.x * 64, tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    float sum[4][4] = {};
    for (int k0 = 0; k0 < inner; k0 += 16) {
        const int k = k0 + tx;
        for (int i = 0; i < 4; ++i) {
            const int row = row0 + ty + 16 * i, feature = feature0 + ty + 16 * i;
            a[tx][ty + 16 * i] = row < rows && k < inner ? (float)x[(size_t)row * inner + k] : 0.0f;
            b[tx][ty + 16 * i] = feature < features && k < inner ? (float)weight[(size_t)feature * inner + k] : 0.0f;
        }
        __syncthreads();
        for (int kk = 0; kk < 16; ++kk) {
            for (int i = 0; i < 4; ++i) {
                for (int j = 0; j < 4; ++j) sum[i][j] += a[kk][ty + 16 * i] * b[kk][tx + 16 * j];
            }
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; ++i) {
        for (int j = 0; j < 4; ++j) {
            const int row = row0 + ty + 16 * i, feature = feature0 + tx + 16 * j;
            if (row < rows && feature < features) {
                put(out + (size_t)row * features + feature, gelu(sum[i][j] + (float)bias[feature]));
            }
        }
    }
}

template <typename T>
void linear_gelu(const T* x, const T* weight, const T* bias, T* out, int rows, int inner, int features,
                 cudaStream_t stream) {
    if (rows == 0 || features == 0) return;
    const dim3 grid((features + 63) / 64, (rows + 63) / 64);
    fused_kernel<<<grid, 256, 0, stream>>>(x, weight, bias, out, rows, inner, features);
}
