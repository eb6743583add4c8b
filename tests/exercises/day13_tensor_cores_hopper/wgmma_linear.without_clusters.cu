// y = x w^T by wgmma with warp specialization: one warpgroup copies tiles in advance, and two multiply. A block
// computes a 128 x 256 tile of y.
//
//   x: [rows, in]     w: [out, in]     y: [rows, out]     in and out are multiples of 8, and in is not 0
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "llmk/mbarrier.cuh"
#include "llmk/mma.cuh"
#include "llmk/tma.cuh"
#include "llmk/wgmma.cuh"

constexpr int kRows = 128, kColumns = 256, kDepth = 64;
constexpr int kStages = 4;
constexpr int kStageBytes = 2 * kDepth * (kRows + kColumns);
constexpr int kSharedBytes = 1024 + kStages * kStageBytes + 2 * kStages * 8;

template <typename T>
__global__ void __launch_bounds__(3 * 128, 1)
    linear_kernel(const __grid_constant__ CUtensorMap x_map, const __grid_constant__ CUtensorMap w_map, T* y, int rows,
                  int in, int out) {
    extern __shared__ unsigned char shared[];
    unsigned char* tiles = shared + (1024 - llmk::shared_address(shared) % 1024) % 1024;
    uint64_t* full = reinterpret_cast<uint64_t*>(tiles + kStages * kStageBytes);  // [kStages]: the tiles have arrived
    uint64_t* empty = full + kStages;  // [kStages]: both warpgroups have finished with the tiles
    const int row0 = blockIdx.y * kRows, column0 = blockIdx.x * kColumns, warpgroup = threadIdx.x / 128;
    if (threadIdx.x == 0) {
        for (int s = 0; s < kStages; ++s) {
            llmk::mbarrier_init(full + s, 1);
            llmk::mbarrier_init(empty + s, 2);
        }
        llmk::fence_mbarrier_init();
    }
    __syncthreads();

    llmk::Ring<kStages> ring;
    if (warpgroup == 0) {
        llmk::setmaxnreg_dec<40>();
        if (threadIdx.x == 0) {
            for (int k = 0; k < in; k += kDepth, ring.next()) {
                unsigned char* x_tile = tiles + ring.stage * kStageBytes;
                llmk::mbarrier_wait_parity(empty + ring.stage, ring.parity ^ 1);
                llmk::mbarrier_arrive_expect_tx(full + ring.stage, kStageBytes);
                llmk::tma_load(x_tile, &x_map, full + ring.stage, k, row0, 0);
                llmk::tma_load(x_tile + 2 * kDepth * kRows, &w_map, full + ring.stage, k, column0, 0);
            }
        }
    } else {
        llmk::setmaxnreg_inc<232>();
        const int consumer = warpgroup - 1, thread = threadIdx.x % 128, lane = thread % 32;
        float sums[kColumns / 2];
        for (int k = 0; k < in; k += kDepth, ring.next()) {
            const unsigned char* x_tile = tiles + ring.stage * kStageBytes;
            llmk::mbarrier_wait_parity(full + ring.stage, ring.parity);
            const uint64_t a = llmk::make_smem_desc(x_tile + consumer * 2 * kDepth * 64);
            const uint64_t b = llmk::make_smem_desc(x_tile + 2 * kDepth * kRows);
            llmk::wgmma_fence();
#pragma unroll
            for (int part = 0; part < kDepth / 16; ++part) {
                llmk::wgmma_ss<T>(sums, a + 2 * part, b + 2 * part, k > 0 || part > 0);
            }
            llmk::wgmma_commit_group();
            llmk::wgmma_wait_group<0>();
            if (thread == 0) llmk::mbarrier_arrive(empty + ring.stage);
        }

        const int row = row0 + consumer * 64 + thread / 32 * 16 + lane / 4;
#pragma unroll
        for (int g = 0; g < kColumns / 8; ++g) {
            const int column = column0 + 8 * g + lane % 4 * 2;
            if (column >= out) break;
            for (int h = 0; h < 2; ++h) {
                if (row + 8 * h >= rows) continue;
                *reinterpret_cast<unsigned*>(y + static_cast<long long>(row + 8 * h) * out + column) =
                    llmk::pack_pair<T>(sums[4 * g + 2 * h], sums[4 * g + 2 * h + 1]);
            }
        }
    }
}

template <typename T>
static void linear(const T* x, const T* w, T* y, int rows, int in, int out, cudaStream_t stream) {
    if (rows == 0 || out == 0) return;
    CUtensorMap x_map, w_map;
    if (llmk::make_tensor_map(&x_map, x, in, rows, 1, in, 8, kRows) != cudaSuccess) return;
    if (llmk::make_tensor_map(&w_map, w, in, out, 1, in, 8, kColumns) != cudaSuccess) return;
    cudaFuncSetAttribute(linear_kernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
    const dim3 grid((out + kColumns - 1) / kColumns, (rows + kRows - 1) / kRows);
    linear_kernel<T><<<grid, 3 * 128, kSharedBytes, stream>>>(x_map, w_map, y, rows, in, out);
}
