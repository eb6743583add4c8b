// y = x w^T with wgmma, step 1: a warpgroup computes 64 x 128 of y. Per 64 elements along k it loads two tiles, waits
// for them, multiplies, and waits for the wgmma group.
//
//   x: [rows, in]     w: [out, in]     y: [rows, out]     in and out are multiples of 8
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "llmk/mbarrier.cuh"
#include "llmk/tma.cuh"
#include "llmk/wgmma.cuh"

constexpr int kRows = 64, kColumns = 128, kDepth = 64;
constexpr int kTileBytes = 2 * kDepth * (kRows + kColumns);

__global__ void __launch_bounds__(128)
    linear_kernel(const __grid_constant__ CUtensorMap x_map, const __grid_constant__ CUtensorMap w_map,
                  __nv_bfloat16* y, int rows, int in, int out) {
    __shared__ __align__(1024) unsigned char tiles[kTileBytes];  // [kRows][kDepth] of x, then [kColumns][kDepth] of w
    __shared__ uint64_t arrived;
    unsigned char* w_tile = tiles + 2 * kDepth * kRows;
    const int row0 = blockIdx.y * kRows, column0 = blockIdx.x * kColumns;
    if (threadIdx.x == 0) {
        llmk::mbarrier_init(&arrived, 1);
        llmk::fence_mbarrier_init();
    }
    __syncthreads();

    float sums[kColumns / 2];
    for (int k = 0; k < in; k += kDepth) {
        if (threadIdx.x == 0) {
            llmk::mbarrier_arrive_expect_tx(&arrived, kTileBytes);
            llmk::tma_load(tiles, &x_map, &arrived, k, row0, 0);
            llmk::tma_load(w_tile, &w_map, &arrived, k, column0, 0);
        }
        llmk::mbarrier_wait_parity(&arrived, k / kDepth % 2);
        const uint64_t a = llmk::make_smem_desc(tiles), b = llmk::make_smem_desc(w_tile);
        llmk::wgmma_fence();
#pragma unroll
        for (int part = 0; part < kDepth / 16; ++part) {  // 16 elements are 32 bytes: 2 units of a descriptor
            llmk::wgmma_ss<__nv_bfloat16>(sums, a + 2 * part, b + 2 * part, k > 0 || part > 0);
        }
        llmk::wgmma_commit_group();
        llmk::wgmma_wait_group<0>();
        __syncthreads();  // all threads are done with the tiles
    }

    const int lane = threadIdx.x % 32, row = row0 + threadIdx.x / 32 * 16 + lane / 4;
#pragma unroll
    for (int g = 0; g < kColumns / 8; ++g) {
        const int column = column0 + 8 * g + lane % 4 * 2;
        if (column >= out) break;
        for (int h = 0; h < 2; ++h) {
            if (row + 8 * h >= rows) continue;
            *reinterpret_cast<__nv_bfloat162*>(y + static_cast<long long>(row + 8 * h) * out + column) =
                __floats2bfloat162_rn(sums[4 * g + 2 * h], sums[4 * g + 2 * h + 1]);
        }
    }
}

extern "C" void linear(const __nv_bfloat16* x, const __nv_bfloat16* w, __nv_bfloat16* y, int rows, int in, int out,
                       cudaStream_t stream) {
    if (rows == 0 || in == 0 || out == 0) return;
    CUtensorMap x_map, w_map;
    if (llmk::make_tensor_map(&x_map, x, in, rows, 1, in, 8, kRows) != cudaSuccess) return;
    if (llmk::make_tensor_map(&w_map, w, in, out, 1, in, 8, kColumns) != cudaSuccess) return;
    const dim3 grid((out + kColumns - 1) / kColumns, (rows + kRows - 1) / kRows);
    linear_kernel<<<grid, 128, 0, stream>>>(x_map, w_map, y, rows, in, out);
}
