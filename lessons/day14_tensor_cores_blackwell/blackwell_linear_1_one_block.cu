// y = x w^T on Blackwell's tensor cores (sm_100a), step 1: one tile at a time, as in Hopper's step 1. A block of 128
// threads computes 128 x 128 of y. One thread loads two tiles, waits, issues the mma instructions, and waits; the
// accumulators are in tensor memory. Then each warp reads its quarter of them.
//
//   x: [rows, in]     w: [out, in]     y: [rows, out]     in and out are multiples of 8, and in is not 0
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "llmk/mbarrier.cuh"
#include "llmk/tcgen05.cuh"
#include "llmk/tma.cuh"

constexpr int kRows = 128, kColumns = 128, kDepth = 64;
constexpr int kXBytes = 2 * kRows * kDepth, kTileBytes = kXBytes + 2 * kColumns * kDepth;

__global__ void __launch_bounds__(128)
    linear_kernel(const __grid_constant__ CUtensorMap x_map, const __grid_constant__ CUtensorMap w_map,
                  __nv_bfloat16* y, int rows, int in, int out) {
    __shared__ __align__(1024) unsigned char tiles[kTileBytes];  // [kRows][kDepth] of x, then [kColumns][kDepth] of w
    __shared__ uint64_t arrived, complete;
    __shared__ unsigned taken;
    const int row0 = blockIdx.y * kRows, column0 = blockIdx.x * kColumns;
    if (threadIdx.x == 0) {
        llmk::mbarrier_init(&arrived, 1);
        llmk::mbarrier_init(&complete, 1);
        llmk::fence_mbarrier_init();
    }
    if (threadIdx.x < 32) llmk::tcgen05_alloc<1>(&taken, kColumns);
    __syncthreads();
    const unsigned accumulators = taken;

    const int steps = (in + kDepth - 1) / kDepth;
    if (threadIdx.x == 0) {
        for (int k = 0; k < steps; ++k) {
            llmk::mbarrier_arrive_expect_tx(&arrived, kTileBytes);
            llmk::tma_load(tiles, &x_map, &arrived, k * kDepth, row0, 0);
            llmk::tma_load(tiles + kXBytes, &w_map, &arrived, k * kDepth, column0, 0);
            llmk::mbarrier_wait_parity(&arrived, k % 2);
            const uint64_t a = llmk::make_tcgen05_smem_desc(tiles), b = llmk::make_tcgen05_smem_desc(tiles + kXBytes);
            constexpr unsigned kind = llmk::make_instr_desc<__nv_bfloat16>(kRows, kColumns);
            for (int part = 0; part < kDepth / 16; ++part) {
                llmk::tcgen05_mma<1>(accumulators, a + 2 * part, b + 2 * part, kind, k > 0 || part > 0);
            }
            llmk::tcgen05_commit<1>(&complete);
            llmk::mbarrier_wait_parity(&complete, k % 2);
        }
    }
    __syncthreads();  // thread 0 has waited for the last mma
    llmk::tcgen05_fence_after_thread_sync();

    const int row = row0 + threadIdx.x;  // lane r of tensor memory is row r of the tile
    for (int first = 0; first < kColumns; first += 32) {
        float sums[32];
        llmk::tcgen05_ld(sums, accumulators + llmk::tmem_lane_offset() + first);
        llmk::tcgen05_wait_ld();
        for (int c = 0; c < 32; ++c) {
            const int column = column0 + first + c;
            if (row < rows && column < out) y[static_cast<long long>(row) * out + column] = __float2bfloat16(sums[c]);
        }
    }
    __syncthreads();
    if (threadIdx.x < 32) llmk::tcgen05_dealloc<1>(accumulators, kColumns);
}

extern "C" void linear(const __nv_bfloat16* x, const __nv_bfloat16* w, __nv_bfloat16* y, int rows, int in, int out,
                       cudaStream_t stream) {
    if (rows == 0 || out == 0) return;
    CUtensorMap x_map, w_map;
    if (llmk::make_tensor_map(&x_map, x, in, rows, 1, in, 8, kRows) != cudaSuccess) return;
    if (llmk::make_tensor_map(&w_map, w, in, out, 1, in, 8, kColumns) != cudaSuccess) return;
    const dim3 grid((out + kColumns - 1) / kColumns, (rows + kRows - 1) / kRows);
    linear_kernel<<<grid, 128, 0, stream>>>(x_map, w_map, y, rows, in, out);
}
