// Version 4: a ring of tiles. While one is used, cp.async copies the next two.
//
//   x: [m, k]     w: [n, k]     y: [m, n], f16     m and n are multiples of 128, k of 64
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "llmk/async_copy.cuh"
#include "llmk/mma.cuh"
#include "llmk/swizzle.cuh"

constexpr int kSize = 128;     // rows of x and of w per block: its tile of y is 128 x 128
constexpr int kDepth = 64;     // elements along k per step: 128 bytes of a row
constexpr int kThreads = 128;  // four warps, each with a quarter of the tile: 64 x 64
constexpr int kStages = 3;     // tiles of the ring
constexpr int kTile = kSize * kDepth;
constexpr int kShared = 2 * kStages * 2 * kTile;  // bytes

using Layout = llmk::Swizzle<kDepth>;

__global__ void __launch_bounds__(kThreads, 2) gemm_kernel(const __half* x, const __half* w, __half* y, int n, int k) {
    extern __shared__ __align__(128) __half ring[];  // [kStages][x, w][kSize][kDepth]
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int warp_row = warp / 2 * 64, warp_column = warp % 2 * 64;
    const int row0 = blockIdx.y * kSize + warp_row, column0 = blockIdx.x * kSize + warp_column;  // of the warp's tile
    x += static_cast<long long>(blockIdx.y) * kSize * k;
    w += static_cast<long long>(blockIdx.x) * kSize * k;
    float sums[4][8][4] = {};  // the warp's 64 x 64 of y: 4 x 8 tiles of 16 x 8

    const llmk::SwizzledCopier<__half, kDepth, kThreads> copier(k);
    int to_copy = k / kDepth;
    auto start_copy = [&](int slot) {
        if (to_copy-- > 0) {
            copier.copy<kSize>(ring + slot * 2 * kTile, x, kSize);
            copier.copy<kSize>(ring + slot * 2 * kTile + kTile, w, kSize);
            x += kDepth;
            w += kDepth;
        }
        __pipeline_commit();  // one group per step; the last ones are empty
    };
    for (int slot = 0; slot < kStages - 1; ++slot) start_copy(slot);

    int slot = 0;
    for (int first = 0; first < k; first += kDepth) {
        __pipeline_wait_prior(kStages - 2);
        __syncthreads();  // this step's tiles have arrived, and all threads are done with the previous ones
        const __half *x_tile = ring + slot * 2 * kTile, *w_tile = x_tile + kTile;
        start_copy(slot == 0 ? kStages - 1 : slot - 1);
        slot = slot == kStages - 1 ? 0 : slot + 1;
#pragma unroll
        for (int c = 0; c < kDepth / 16; ++c) {
            unsigned a[4][4], b[4][4];
#pragma unroll
            for (int i = 0; i < 4; ++i)
                llmk::ldmatrix_x4(a[i], x_tile + Layout::offset(warp_row + i * 16 + lane % 16, lane / 16 * 8, c));
#pragma unroll
            for (int j = 0; j < 4; ++j)
                llmk::ldmatrix_x4(b[j], w_tile + Layout::offset(warp_column + j * 16 + lane % 8 + lane / 16 * 8,
                                                                lane / 8 % 2 * 8, c));
#pragma unroll
            for (int i = 0; i < 4; ++i) {
#pragma unroll
                for (int j = 0; j < 8; ++j)
                    llmk::mma_m16n8k16<__half>(sums[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
            }
        }
    }

    // Lane i holds columns i % 4 * 2 and + 1 of rows i / 4 and i / 4 + 8 of each 16 x 8 tile.
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 8; ++j) {
            __half* to = y + static_cast<long long>(row0 + i * 16 + lane / 4) * n + column0 + j * 8 + lane % 4 * 2;
            *reinterpret_cast<unsigned*>(to) = llmk::pack_pair<__half>(sums[i][j][0], sums[i][j][1]);
            *reinterpret_cast<unsigned*>(to + 8LL * n) = llmk::pack_pair<__half>(sums[i][j][2], sums[i][j][3]);
        }
    }
}

extern "C" void gemm(const __half* x, const __half* w, __half* y, int m, int n, int k, cudaStream_t stream) {
    if (m == 0 || n == 0) return;
    cudaFuncSetAttribute(gemm_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared);
    gemm_kernel<<<dim3(n / kSize, m / kSize), kThreads, kShared, stream>>>(x, w, y, n, k);
}
