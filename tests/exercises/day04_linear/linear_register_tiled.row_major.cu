// Correct alternative: 128 x 128 outputs per block, 8 x 8 per thread. Tiles stay row-major, and a thread reads four
// neighboring columns of a row at a time.
#include <cuda_runtime.h>

constexpr int kPitch = 20;  // row stride in floats: the 16-byte reads of eight rows use all 32 banks

// x: [rows, inner]   weight: [features, inner]   bias: [features]   out: [rows, features]
__global__ void linear_kernel(const float* x, const float* weight, const float* bias, float* out, int rows, int inner,
                              int features) {
    __shared__ __align__(16) float a[128][kPitch], b[128][kPitch];  // [row or feature][k]
    const int row0 = blockIdx.y * 128, feature0 = blockIdx.x * 128;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    // A thread computes the rows ty, ty + 16, ... and the columns tx, tx + 16, ... of the tile.
    const int ty = warp / 2 * 4 + lane / 8, tx = warp % 2 * 8 + lane % 8;
    float sum[8][8] = {};
    for (int k0 = 0; k0 < inner; k0 += 16) {
        const int k = threadIdx.x % 16;
        for (int r = threadIdx.x / 16; r < 128; r += 16) {
            a[r][k] = row0 + r < rows && k0 + k < inner ? x[(size_t)(row0 + r) * inner + k0 + k] : 0.0f;
            b[r][k] =
                feature0 + r < features && k0 + k < inner ? weight[(size_t)(feature0 + r) * inner + k0 + k] : 0.0f;
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 16; i += 4) {
            float4 v[8], w[8];
#pragma unroll
            for (int j = 0; j < 8; ++j) {
                v[j] = *reinterpret_cast<const float4*>(&a[ty + 16 * j][i]);
                w[j] = *reinterpret_cast<const float4*>(&b[tx + 16 * j][i]);
            }
#pragma unroll
            for (int r = 0; r < 8; ++r) {
#pragma unroll
                for (int j = 0; j < 8; ++j)
                    sum[r][j] += v[r].x * w[j].x + v[r].y * w[j].y + v[r].z * w[j].z + v[r].w * w[j].w;
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < 8; ++r) {
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            const int row = row0 + ty + 16 * r, feature = feature0 + tx + 16 * j;
            if (row < rows && feature < features) out[(size_t)row * features + feature] = sum[r][j] + bias[feature];
        }
    }
}

extern "C" void linear_register_tiled(const float* x, const float* weight, const float* bias, float* out, int rows,
                                      int in_features, int out_features, cudaStream_t stream) {
    if (rows == 0 || out_features == 0) return;
    const dim3 grid((out_features + 127) / 128, (rows + 127) / 128);
    linear_kernel<<<grid, 256, 0, stream>>>(x, weight, bias, out, rows, in_features, out_features);
}
