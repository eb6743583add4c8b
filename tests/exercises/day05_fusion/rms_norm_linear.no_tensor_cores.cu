// Correct alternative: multiply-adds without tensor cores, 4 x 4 outputs per thread, squares summed with atomics in
// shared memory
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

__device__ void put(__half* p, float x) { *p = __float2half(x); }
__device__ void put(__nv_bfloat16* p, float x) { *p = __float2bfloat16(x); }

// x: [rows, inner]   norm_weight: [inner]   weight: [features, inner]   out: [rows, features]
template <typename T>
__global__ void fused_kernel(const T* x, const T* norm_weight, const T* weight, T* out, int rows, int inner,
                             int features, float eps) {
    __shared__ float a[16][65], b[16][65];  // [k][row or feature], padded
    __shared__ float total[64];
    const int row0 = blockIdx.y * 64, feature0 = blockIdx.x * 64, tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    float sum[4][4] = {}, squares[4] = {};
    for (int k0 = 0; k0 < inner; k0 += 16) {
        const int k = k0 + tx;
        const float scale = k < inner ? (float)norm_weight[k] : 0.0f;
        for (int i = 0; i < 4; ++i) {
            const int row = row0 + ty + 16 * i, feature = feature0 + ty + 16 * i;
            const float value = row < rows && k < inner ? (float)x[(size_t)row * inner + k] : 0.0f;
            squares[i] += value * value;
            a[tx][ty + 16 * i] = value * scale;  // x * scale may be too large for f16, so the tile is f32
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
    if (threadIdx.x < 64) total[threadIdx.x] = 0.0f;
    __syncthreads();
    for (int i = 0; i < 4; ++i) atomicAdd(&total[ty + 16 * i], squares[i]);
    __syncthreads();
    for (int i = 0; i < 4; ++i) {
        const int row = row0 + ty + 16 * i;
        const float factor = rsqrtf(total[ty + 16 * i] / max(inner, 1) + eps);
        for (int j = 0; j < 4; ++j) {
            const int feature = feature0 + tx + 16 * j;
            if (row < rows && feature < features) put(out + (size_t)row * features + feature, sum[i][j] * factor);
        }
    }
}

template <typename T>
void rms_norm_linear(const T* x, const T* norm_weight, const T* weight, T* out, int rows, int inner, int features,
                     float eps, cudaStream_t stream) {
    if (rows == 0 || features == 0) return;
    const dim3 grid((features + 63) / 64, (rows + 63) / 64);
    fused_kernel<<<grid, 256, 0, stream>>>(x, norm_weight, weight, out, rows, inner, features, eps);
}
