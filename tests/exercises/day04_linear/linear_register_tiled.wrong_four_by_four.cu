// Wrong: the result is right, but 4 x 4 outputs per thread are too few. Two 16-byte reads, of at least two wavefronts
// each, feed only 16 multiply-adds.
//
// No other assignment of 4 x 4 tiles to the lanes needs fewer wavefronts.
#include <cuda_runtime.h>

// x: [rows, inner]   weight: [features, inner]   bias: [features]   out: [rows, features]
__global__ void linear_kernel(const float* x, const float* weight, const float* bias, float* out, int rows, int inner,
                              int features) {
    __shared__ __align__(16) float a[16][68], b[16][68];  // [k][row or feature], rows of whole float4
    const int row0 = blockIdx.y * 64, feature0 = blockIdx.x * 64;
    // A warp has 4 x 8 register tiles. Lanes 2 i and 2 i + 1 have the same columns, lanes l and l ^ 2 the same rows.
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int ty = warp / 2 * 4 + lane / 16 * 2 + lane % 2, tx = warp % 2 * 8 + lane / 2 % 8;
    float sum[4][4] = {};
    for (int k0 = 0; k0 < inner; k0 += 16) {
        for (int i = threadIdx.x; i < 64 * 16; i += 256) {
            // A warp loads eight values of k from 4 rows; its lanes store to 32 different banks.
            const int k = i % 8 + i / 512 * 8, r = i / 8 % 64;
            a[k][r] = row0 + r < rows && k0 + k < inner ? x[(size_t)(row0 + r) * inner + k0 + k] : 0.0f;
            b[k][r] =
                feature0 + r < features && k0 + k < inner ? weight[(size_t)(feature0 + r) * inner + k0 + k] : 0.0f;
        }
        __syncthreads();
        for (int k = 0; k < 16; ++k) {
            const float4 p = *reinterpret_cast<const float4*>(&a[k][ty * 4]);
            const float4 q = *reinterpret_cast<const float4*>(&b[k][tx * 4]);
            const float pa[4] = {p.x, p.y, p.z, p.w}, qb[4] = {q.x, q.y, q.z, q.w};
            for (int i = 0; i < 4; ++i) {
                for (int j = 0; j < 4; ++j) sum[i][j] += pa[i] * qb[j];
            }
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; ++i) {
        for (int j = 0; j < 4; ++j) {
            const int row = row0 + ty * 4 + i, feature = feature0 + tx * 4 + j;
            if (row < rows && feature < features) out[(size_t)row * features + feature] = sum[i][j] + bias[feature];
        }
    }
}

extern "C" void linear_register_tiled(const float* x, const float* weight, const float* bias, float* out, int rows,
                                      int in_features, int out_features, cudaStream_t stream) {
    if (rows == 0 || out_features == 0) return;
    const dim3 grid((out_features + 63) / 64, (rows + 63) / 64);
    linear_kernel<<<grid, 256, 0, stream>>>(x, weight, bias, out, rows, in_features, out_features);
}
