// A different design: weights become halves in shared memory, and nvcuda::wmma multiplies them. Eight warps: two halves of
// 32 features, times four parts of a tile of 128 columns.
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mma.h>

namespace wmma = nvcuda::wmma;
constexpr int kThreads = 256, kFeatures = 32, kColumns = 128, kPitch = kColumns + 8;

__global__ void __launch_bounds__(kThreads)
    tiles_of_halves(const __half* x, const signed char* weight, const float* scales, __half* out, int rows,
                    int in_features, int out_features) {
    __shared__ __align__(32) __half x_tile[16 * kPitch];
    __shared__ __align__(32) __half w_tile[kFeatures * kPitch];
    __shared__ __align__(32) float sums[8][16 * 16];
    const int warp = threadIdx.x / 32, row0 = blockIdx.y * 16, feature0 = blockIdx.x * kFeatures;
    const int row = row0 + threadIdx.x / 16, x_column = threadIdx.x % 16 * 8;
    const int feature = feature0 + threadIdx.x / 8, w_column = threadIdx.x % 8 * 16;
    const __half* x_row = x + static_cast<long long>(row) * in_features;
    const signed char* w_row = weight + static_cast<long long>(feature) * in_features;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> product;
    wmma::fill_fragment(product, 0.0f);
    for (int column0 = 0; column0 < in_features; column0 += kColumns) {
        const int x_left = row < rows ? in_features - column0 - x_column : 0;
        const int w_left = feature < out_features ? in_features - column0 - w_column : 0;
        __half* x_to = x_tile + threadIdx.x / 16 * kPitch + x_column;
        const __half* x_from = x_row + column0 + x_column;
        if (x_left >= 8 && reinterpret_cast<unsigned long long>(x_from) % 16 == 0) {
            *reinterpret_cast<uint4*>(x_to) = *reinterpret_cast<const uint4*>(x_from);
        } else {
            for (int c = 0; c < 8; ++c) x_to[c] = c < x_left ? x_from[c] : __half(0.0f);
        }
        unsigned words[4] = {};
        const signed char* w_from = w_row + column0 + w_column;
        if (w_left >= 16 && reinterpret_cast<unsigned long long>(w_from) % 16 == 0) {
            const uint4 found = *reinterpret_cast<const uint4*>(w_from);
            words[0] = found.x, words[1] = found.y, words[2] = found.z, words[3] = found.w;
        } else {
            for (int c = 0; c < 16 && c < w_left; ++c) {
                words[c / 4] |= static_cast<unsigned>(static_cast<unsigned char>(w_from[c])) << (c % 4 * 8);
            }
        }
        for (int c = 0; c < 16; c += 2) {
            const unsigned biased = (words[c / 4] ^ 0x80808080u) >> (c % 4 * 8);
            const unsigned pair = 0x64006400u | (biased & 255) | (biased >> 8 & 255) << 16;
            *reinterpret_cast<__half2*>(w_tile + threadIdx.x / 8 * kPitch + w_column + c) =
                __hsub2(*reinterpret_cast<const __half2*>(&pair), __half2half2(__ushort_as_half(0x6480)));
        }
        __syncthreads();
        for (int k = warp / 2 * 32; k < warp / 2 * 32 + 32; k += 16) {
            wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> a;
            wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::col_major> b;
            wmma::load_matrix_sync(a, x_tile + k, kPitch);
            wmma::load_matrix_sync(b, w_tile + warp % 2 * 16 * kPitch + k, kPitch);
            wmma::mma_sync(product, a, b, product);
        }
        __syncthreads();
    }
    wmma::store_matrix_sync(sums[warp], product, 16, wmma::mem_row_major);
    __syncthreads();
    for (int o = threadIdx.x; o < 16 * kFeatures; o += kThreads) {
        const int r = o / kFeatures, f = o % kFeatures;
        if (row0 + r >= rows || feature0 + f >= out_features) continue;
        float sum = 0.0f;
        for (int quarter = 0; quarter < 4; ++quarter) sum += sums[2 * quarter + f / 16][r * 16 + f % 16];
        out[static_cast<long long>(row0 + r) * out_features + feature0 + f] =
            __float2half_rn(sum * scales[feature0 + f]);
    }
}

extern "C" void w8a16_linear(const __half* x, const signed char* weight, const float* scales, __half* out, int rows,
                             int in_features, int out_features, cudaStream_t stream) {
    if (rows == 0 || out_features == 0) return;
    const dim3 grid((out_features + kFeatures - 1) / kFeatures, (rows + 15) / 16);
    tiles_of_halves<<<grid, kThreads, 0, stream>>>(x, weight, scales, out, rows, in_features, out_features);
}
