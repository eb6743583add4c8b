// Correct alternative: fragments of 32 x 8 x 16, accumulators that start from the bias, 64 x 64 outputs per block of
// eight warps
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
    constexpr int ld = 40;  // 32 columns and 8 of padding
    __shared__ __align__(32) T a[64 * ld], b[64 * ld];
    __shared__ __align__(32) float sums[64 * 68];
    const int row0 = blockIdx.y * 64, feature0 = blockIdx.x * 64, warp = threadIdx.x / 32;
    for (int i = threadIdx.x; i < 64 * 64; i += blockDim.x) {
        const int feature = feature0 + i % 64;
        sums[i / 64 * 68 + i % 64] = feature < features ? static_cast<float>(bias[feature]) : 0.0f;
    }
    __syncthreads();
    const int r = warp / 4 * 32, f = warp % 4 * 16;  // this warp's 32 x 16 outputs
    wmma::fragment<wmma::accumulator, 32, 8, 16, float> sum[2];
    for (int j = 0; j < 2; ++j) wmma::load_matrix_sync(sum[j], sums + r * 68 + f + 8 * j, 68, wmma::mem_row_major);
    for (int k0 = 0; k0 < inner; k0 += 32) {
        for (int i = threadIdx.x; i < 64 * 32; i += blockDim.x) {
            const int k = k0 + i % 32, at = i / 32 * ld + i % 32;
            a[at] = row0 + i / 32 < rows && k < inner ? x[(size_t)(row0 + i / 32) * inner + k] : T(0.0f);
            b[at] =
                feature0 + i / 32 < features && k < inner ? weight[(size_t)(feature0 + i / 32) * inner + k] : T(0.0f);
        }
        __syncthreads();
        for (int k = 0; k < 32; k += 16) {
            wmma::fragment<wmma::matrix_a, 32, 8, 16, T, wmma::row_major> fa;
            wmma::load_matrix_sync(fa, a + r * ld + k, ld);
            for (int j = 0; j < 2; ++j) {
                wmma::fragment<wmma::matrix_b, 32, 8, 16, T, wmma::col_major> fb;
                wmma::load_matrix_sync(fb, b + (f + 8 * j) * ld + k, ld);
                wmma::mma_sync(sum[j], fa, fb, sum[j]);
            }
        }
        __syncthreads();
    }
    for (int j = 0; j < 2; ++j) wmma::store_matrix_sync(sums + r * 68 + f + 8 * j, sum[j], 68, wmma::mem_row_major);
    __syncthreads();
    for (int i = threadIdx.x; i < 64 * 64; i += blockDim.x) {
        const int row = row0 + i / 64, feature = feature0 + i % 64;
        if (row < rows && feature < features) put(out + (size_t)row * features + feature, sums[i / 64 * 68 + i % 64]);
    }
}

template <typename T>
void linear_wmma(const T* x, const T* weight, const T* bias, T* out, int rows, int in_features, int out_features,
                 cudaStream_t stream) {
    if (rows == 0 || out_features == 0) return;
    const dim3 grid((out_features + 63) / 64, (rows + 63) / 64);
    linear_kernel<<<grid, 256, 0, stream>>>(x, weight, bias, out, rows, in_features, out_features);
}

// x: [rows, in_features]   weight: [out_features, in_features]   bias: [out_features]   out: [rows, out_features]
