// A different design: nvcuda::wmma with signed char fragments, tiles of 64 x 64 outputs, and one buffer.
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mma.h>

namespace wmma = nvcuda::wmma;
constexpr int kTile = 64, kDepth = 128, kPitch = kDepth + 16, kThreads = 256;

// Copy 16 columns of a row to shared memory; columns past `left` become zeros.
__device__ void copy_columns(signed char* to, const signed char* from, int left) {
    if (left >= 16 && reinterpret_cast<unsigned long long>(from) % 16 == 0) {
        *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(from);
    } else {
        for (int c = 0; c < 16; ++c) to[c] = c < left ? from[c] : static_cast<signed char>(0);
    }
}

__global__ void __launch_bounds__(kThreads)
    tiles_of_64(const signed char* x, const float* x_scales, const signed char* weight, const float* w_scales,
                __half* out, int rows, int in_features, int out_features) {
    __shared__ __align__(32) signed char tiles[2 * kTile * kPitch];
    __shared__ __align__(32) int sums[8][16 * 16];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int row0 = blockIdx.y * kTile, feature0 = blockIdx.x * kTile;
    wmma::fragment<wmma::accumulator, 16, 16, 16, int> product[2];
    for (auto& sum : product) wmma::fill_fragment(sum, 0);
    for (int column0 = 0; column0 < in_features; column0 += kDepth) {
        for (int piece = threadIdx.x; piece < 2 * kTile * (kDepth / 16); piece += kThreads) {
            const int line = piece / (kDepth / 16), column = column0 + piece % (kDepth / 16) * 16;
            const bool of_x = line < kTile;
            const int row = of_x ? row0 + line : feature0 + line - kTile;
            const bool there = row < (of_x ? rows : out_features);
            copy_columns(tiles + line * kPitch + column - column0,
                         (of_x ? x : weight) + static_cast<long long>(there ? row : 0) * in_features + column,
                         there ? in_features - column : 0);
        }
        __syncthreads();
        for (int k = 0; k < kDepth; k += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> a;
            wmma::load_matrix_sync(a, tiles + warp / 2 * 16 * kPitch + k, kPitch);
            for (int h = 0; h < 2; ++h) {
                wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> b;
                wmma::load_matrix_sync(b, tiles + (kTile + warp % 2 * 32 + 16 * h) * kPitch + k, kPitch);
                wmma::mma_sync(product[h], a, b, product[h]);
            }
        }
        __syncthreads();
    }
    for (int h = 0; h < 2; ++h) {
        wmma::store_matrix_sync(sums[warp], product[h], 16, wmma::mem_row_major);
        __syncwarp();
        for (int o = lane; o < 256; o += 32) {
            const int row = row0 + warp / 2 * 16 + o / 16, feature = feature0 + warp % 2 * 32 + 16 * h + o % 16;
            if (row >= rows || feature >= out_features) continue;
            const float sum = static_cast<float>(sums[warp][o]) * x_scales[row];
            out[static_cast<long long>(row) * out_features + feature] = __float2half_rn(sum * w_scales[feature]);
        }
        __syncwarp();
    }
}

extern "C" void w8a8_linear(const signed char* x, const float* x_scales, const signed char* weight,
                            const float* w_scales, __half* out, int rows, int in_features, int out_features,
                            cudaStream_t stream) {
    if (rows == 0 || out_features == 0) return;
    const dim3 grid((out_features + kTile - 1) / kTile, (rows + kTile - 1) / kTile);
    tiles_of_64<<<grid, kThreads, 0, stream>>>(x, x_scales, weight, w_scales, out, rows, in_features, out_features);
}
