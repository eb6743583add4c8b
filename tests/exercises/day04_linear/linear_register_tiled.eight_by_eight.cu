// Correct alternative: 64 x 64 outputs per block, 8 x 8 per thread, 64 threads, k-major tiles with 4 floats of padding,
// one buffer
#include <cuda_runtime.h>

// x: [rows, inner]   weight: [features, inner]   bias: [features]   out: [rows, features]
__global__ void linear_kernel(const float* x, const float* weight, const float* bias, float* out, int rows, int inner,
                              int features) {
    __shared__ __align__(16) float a[16][68], b[16][68];  // [k][row or feature]
    const int row0 = blockIdx.y * 64, feature0 = blockIdx.x * 64;
    const int tx = threadIdx.x % 8, ty = threadIdx.x / 8;
    float sum[8][8] = {};
    for (int k0 = 0; k0 < inner; k0 += 16) {
        for (int i = threadIdx.x; i < 64 * 16; i += 64) {
            const int k = i % 8 + i / 512 * 8, r = i / 8 % 64;
            a[k][r] = row0 + r < rows && k0 + k < inner ? x[(size_t)(row0 + r) * inner + k0 + k] : 0.0f;
            b[k][r] =
                feature0 + r < features && k0 + k < inner ? weight[(size_t)(feature0 + r) * inner + k0 + k] : 0.0f;
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 16; ++k) {
            float p[8], q[8];
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                *reinterpret_cast<float4*>(p + 4 * half) = *reinterpret_cast<const float4*>(&a[k][ty * 4 + 32 * half]);
                *reinterpret_cast<float4*>(q + 4 * half) = *reinterpret_cast<const float4*>(&b[k][tx * 4 + 32 * half]);
            }
#pragma unroll
            for (int i = 0; i < 8; ++i) {
#pragma unroll
                for (int j = 0; j < 8; ++j) sum[i][j] += p[i] * q[j];
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) {
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            const int row = row0 + ty * 4 + i / 4 * 32 + i % 4, feature = feature0 + tx * 4 + j / 4 * 32 + j % 4;
            if (row < rows && feature < features) out[(size_t)row * features + feature] = sum[i][j] + bias[feature];
        }
    }
}

extern "C" void linear_register_tiled(const float* x, const float* weight, const float* bias, float* out, int rows,
                                      int in_features, int out_features, cudaStream_t stream) {
    if (rows == 0 || out_features == 0) return;
    const dim3 grid((out_features + 63) / 64, (rows + 63) / 64);
    linear_kernel<<<grid, 64, 0, stream>>>(x, weight, bias, out, rows, in_features, out_features);
}
