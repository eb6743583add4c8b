// Correct alternative: squares and scaled weights are computed in registers before they are stored to shared memory, 64
// x 64 outputs per block of eight warps
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mma.h>

using namespace nvcuda;

__device__ void put(__half* p, float x) { *p = __float2half(x); }
__device__ void put(__nv_bfloat16* p, float x) { *p = __float2bfloat16(x); }

// x: [rows, inner]   norm_weight: [inner]   weight: [features, inner]   out: [rows, features]
template <typename T>
__global__ void fused_kernel(const T* x, const T* norm_weight, const T* weight, T* out, int rows, int inner,
                             int features, float eps) {
    constexpr int ld = 40;  // 32 columns and 8 of padding
    __shared__ __align__(32) T a[64 * ld], b[64 * ld];
    __shared__ __align__(32) float sums[64 * 68];
    __shared__ float factor[64];
    const int row0 = blockIdx.y * 64, feature0 = blockIdx.x * 64, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int r = warp / 4 * 32, f = warp % 4 * 16;  // this warp's 32 x 16 outputs
    wmma::fragment<wmma::accumulator, 32, 8, 16, float> sum[2];
    for (int j = 0; j < 2; ++j) wmma::fill_fragment(sum[j], 0.0f);
    float squares[8] = {};  // partial sums: columns lane, lane + 32, ... of rows warp, warp + 8, ...
    for (int k0 = 0; k0 < inner; k0 += 32) {
        const int k = k0 + lane;
        const float scale = k < inner ? static_cast<float>(norm_weight[k]) : 0.0f;
        for (int i = 0; i < 8; ++i) {
            const int row = row0 + warp + 8 * i, feature = feature0 + warp + 8 * i, at = (warp + 8 * i) * ld + lane;
            const T value = row < rows && k < inner ? x[(size_t)row * inner + k] : T(0.0f);
            squares[i] += (float)value * (float)value;
            a[at] = value;
            const float w = feature < features && k < inner ? (float)weight[(size_t)feature * inner + k] : 0.0f;
            put(&b[at], w * scale);
        }
        __syncthreads();
        for (int kk = 0; kk < 32; kk += 16) {
            wmma::fragment<wmma::matrix_a, 32, 8, 16, T, wmma::row_major> fa;
            wmma::load_matrix_sync(fa, a + r * ld + kk, ld);
            for (int j = 0; j < 2; ++j) {
                wmma::fragment<wmma::matrix_b, 32, 8, 16, T, wmma::col_major> fb;
                wmma::load_matrix_sync(fb, b + (f + 8 * j) * ld + kk, ld);
                wmma::mma_sync(sum[j], fa, fb, sum[j]);
            }
        }
        __syncthreads();
    }
    for (int i = 0; i < 8; ++i) {
        for (int d = 16; d > 0; d /= 2) squares[i] += __shfl_xor_sync(0xffffffffu, squares[i], d);
        if (lane == 0) factor[warp + 8 * i] = 1.0f / sqrtf(squares[i] / max(inner, 1) + eps);
    }
    for (int j = 0; j < 2; ++j) wmma::store_matrix_sync(sums + r * 68 + f + 8 * j, sum[j], 68, wmma::mem_row_major);
    __syncthreads();
    for (int i = threadIdx.x; i < 64 * 64; i += blockDim.x) {
        const int row = row0 + i / 64, feature = feature0 + i % 64;
        if (row < rows && feature < features) {
            put(out + (size_t)row * features + feature, sums[i / 64 * 68 + i % 64] * factor[i / 64]);
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
