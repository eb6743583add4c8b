// Correct alternative: 64 x 64 outputs per block, four warps of 32 x 32, tiles loaded with ordinary loads, one stage
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mma.h>

using namespace nvcuda;

__device__ void put(__half* p, float x) { *p = __float2half(x); }
__device__ void put(__nv_bfloat16* p, float x) { *p = __float2bfloat16(x); }

// x: [rows, inner]   weight: [features, inner]   bias: [features]   out: [rows, features]
template <typename T>
__global__ void linear_kernel(const T* x, const T* weight, const T* bias, T* out, int rows, int inner, int features) {
    __shared__ __align__(32) T a[64][24], b[64][24];  // 16 columns and 8 of padding
    __shared__ __align__(32) float sums[64][68];
    const int row0 = blockIdx.y * 64, feature0 = blockIdx.x * 64, warp = threadIdx.x / 32;
    const int warp_row = warp / 2 * 32, warp_feature = warp % 2 * 32;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum[2][2];
    for (int i = 0; i < 4; ++i) wmma::fill_fragment(sum[i / 2][i % 2], 0.0f);
    for (int k0 = 0; k0 < inner; k0 += 16) {
        for (int i = threadIdx.x; i < 64 * 16; i += 128) {
            const int k = i % 16, r = i / 16;
            a[r][k] = row0 + r < rows && k0 + k < inner ? x[(size_t)(row0 + r) * inner + k0 + k] : T(0.0f);
            b[r][k] =
                feature0 + r < features && k0 + k < inner ? weight[(size_t)(feature0 + r) * inner + k0 + k] : T(0.0f);
        }
        __syncthreads();
        for (int i = 0; i < 2; ++i) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> fa;
            wmma::load_matrix_sync(fa, &a[warp_row + 16 * i][0], 24);
            for (int j = 0; j < 2; ++j) {
                wmma::fragment<wmma::matrix_b, 16, 16, 16, T, wmma::col_major> fb;
                wmma::load_matrix_sync(fb, &b[warp_feature + 16 * j][0], 24);
                wmma::mma_sync(sum[i][j], fa, fb, sum[i][j]);
            }
        }
        __syncthreads();
    }
    for (int i = 0; i < 2; ++i) {
        for (int j = 0; j < 2; ++j) {
            wmma::store_matrix_sync(&sums[warp_row + 16 * i][warp_feature + 16 * j], sum[i][j], 68,
                                    wmma::mem_row_major);
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < 64 * 64; i += 128) {
        const int row = row0 + i / 64, feature = feature0 + i % 64;
        if (row < rows && feature < features) {
            put(out + (size_t)row * features + feature, sums[i / 64][i % 64] + static_cast<float>(bias[feature]));
        }
    }
}

template <typename T>
void linear_wmma(const T* x, const T* weight, const T* bias, T* out, int rows, int in_features, int out_features,
                 cudaStream_t stream) {
    if (rows == 0 || out_features == 0) return;
    const dim3 grid((out_features + 63) / 64, (rows + 63) / 64);
    linear_kernel<<<grid, 128, 0, stream>>>(x, weight, bias, out, rows, in_features, out_features);
}

// x: [rows, in_features]   weight: [out_features, in_features]   bias: [out_features]   out: [rows, out_features]
