// right: 64 x 128 outputs per block, 8 x 4 per thread, a thread's columns lie 32 apart, so that a warp reads neighbors
#include <cuda_runtime.h>

// x: [rows, inner]   weight: [features, inner]   bias: [features]   out: [rows, features]
__global__ void linear_kernel(const float* x, const float* weight, const float* bias, float* out, int rows, int inner,
                              int features) {
    __shared__ float a[64][17];   // [row][k]
    __shared__ float b[128][17];  // [feature][k]
    const int row0 = blockIdx.y * 64, feature0 = blockIdx.x * 128;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float sum[8][4] = {};
    for (int k0 = 0; k0 < inner; k0 += 16) {
        const int k = threadIdx.x % 16;
        for (int r = threadIdx.x / 16; r < 128; r += 16) {
            if (r < 64) a[r][k] = row0 + r < rows && k0 + k < inner ? x[(size_t)(row0 + r) * inner + k0 + k] : 0.0f;
            b[r][k] =
                feature0 + r < features && k0 + k < inner ? weight[(size_t)(feature0 + r) * inner + k0 + k] : 0.0f;
        }
        __syncthreads();
        for (int i = 0; i < 16; ++i) {
            float w[4];
            for (int j = 0; j < 4; ++j) w[j] = b[lane + 32 * j][i];
            for (int r = 0; r < 8; ++r) {
                const float v = a[warp * 8 + r][i];  // one address for the whole warp
                for (int j = 0; j < 4; ++j) sum[r][j] += v * w[j];
            }
        }
        __syncthreads();
    }
    for (int r = 0; r < 8; ++r) {
        for (int j = 0; j < 4; ++j) {
            const int row = row0 + warp * 8 + r, feature = feature0 + lane + 32 * j;
            if (row < rows && feature < features) out[(size_t)row * features + feature] = sum[r][j] + bias[feature];
        }
    }
}

extern "C" void linear_register_tiled(const float* x, const float* weight, const float* bias, float* out, int rows,
                                      int in_features, int out_features, cudaStream_t stream) {
    if (rows == 0 || out_features == 0) return;
    const dim3 grid((out_features + 127) / 128, (rows + 63) / 64);
    linear_kernel<<<grid, 256, 0, stream>>>(x, weight, bias, out, rows, in_features, out_features);
}
