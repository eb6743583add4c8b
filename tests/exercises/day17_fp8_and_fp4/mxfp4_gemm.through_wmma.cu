// Weights are converted to bf16 in shared memory. Each of two warps multiplies 16 rows of x by 16 columns with WMMA.
#include <cuda_bf16.h>
#include <cuda_fp4.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>
#include <mma.h>

using namespace nvcuda;

constexpr int kPitch = 40;  // row stride of a tile: 32 columns of k and 16 bytes of padding

__global__ void __launch_bounds__(64)
    through_wmma(const __nv_bfloat16* x, const unsigned char* w, const unsigned char* w_scales, __nv_bfloat16* y,
                 int rows, int in, int out) {
    __shared__ __align__(32) __nv_bfloat16 x_tile[16 * kPitch], w_tile[32 * kPitch];
    __shared__ __align__(32) float y_tile[2][16 * 16];
    const int row0 = blockIdx.y * 16, column0 = blockIdx.x * 32, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums;
    wmma::fill_fragment(sums, 0.0f);
    for (int k = 0; k < in; k += 32) {
        for (int i = threadIdx.x; i < 16 * 4; i += 64) {
            uint4 piece = make_uint4(0, 0, 0, 0);
            if (row0 + i / 4 < rows) {
                piece = *reinterpret_cast<const uint4*>(x + static_cast<size_t>(row0 + i / 4) * in + k + i % 4 * 8);
            }
            *reinterpret_cast<uint4*>(x_tile + i / 4 * kPitch + i % 4 * 8) = piece;
        }
        for (int i = threadIdx.x; i < 32 * 4; i += 64) {
            const int column = column0 + i / 4;
            unsigned word = 0;
            __nv_fp8_e8m0 scale;
            scale.__x = 127;
            if (column < out) {
                const size_t place = static_cast<size_t>(column) * in + k;
                word = *reinterpret_cast<const unsigned*>(w + place / 2 + i % 4 * 4);
                scale.__x = w_scales[place / 32];
            }
            for (int p = 0; p < 4; ++p) {
                __nv_fp4x2_e2m1 pair;
                pair.__x = word >> (8 * p) & 255;
                const float2 two = static_cast<float2>(pair);
                const float factor = static_cast<float>(scale);
                *reinterpret_cast<__nv_bfloat162*>(w_tile + i / 4 * kPitch + i % 4 * 8 + 2 * p) =
                    __floats2bfloat162_rn(two.x * factor, two.y * factor);
            }
        }
        __syncthreads();
        for (int part = 0; part < 32; part += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::row_major> a;
            wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, wmma::col_major> b;
            wmma::load_matrix_sync(a, x_tile + part, kPitch);
            wmma::load_matrix_sync(b, w_tile + warp * 16 * kPitch + part, kPitch);
            wmma::mma_sync(sums, a, b, sums);
        }
        __syncthreads();
    }
    wmma::store_matrix_sync(y_tile[warp], sums, 16, wmma::mem_row_major);
    __syncwarp();
    for (int i = lane; i < 256; i += 32) {
        const int row = row0 + i / 16, column = column0 + warp * 16 + i % 16;
        if (row < rows && column < out) y[static_cast<size_t>(row) * out + column] = __float2bfloat16(y_tile[warp][i]);
    }
}

extern "C" void mxfp4_gemm(const __nv_bfloat16* x, const unsigned char* w, const unsigned char* w_scales,
                           __nv_bfloat16* y, int rows, int in_features, int out_features, cudaStream_t stream) {
    if (rows == 0 || out_features == 0) return;
    through_wmma<<<dim3((out_features + 31) / 32, (rows + 15) / 16), 64, 0, stream>>>(x, w, w_scales, y, rows,
                                                                                      in_features, out_features);
}
