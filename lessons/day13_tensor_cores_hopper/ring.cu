// out = 2 x, tile by tile, through a ring of two stages: TMA loads a tile, a warp doubles it in place, TMA stores it.
//
//   x, out: [rows, 64]
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "llmk/mbarrier.cuh"
#include "llmk/tma.cuh"

constexpr int kStages = 2, kRows = 8, kColumns = 64;

__global__ void double_tiles(const __grid_constant__ CUtensorMap x_map, const __grid_constant__ CUtensorMap out_map,
                             int tiles) {
    __shared__ __align__(1024) __half2 buffer[kStages][kRows * kColumns / 2];
    __shared__ uint64_t full[kStages], empty[kStages];
    if (threadIdx.x == 0) {
        for (int s = 0; s < kStages; ++s) {
            llmk::mbarrier_init(full + s, 1);
            llmk::mbarrier_init(empty + s, 1);
        }
        llmk::fence_mbarrier_init();
    }
    __syncthreads();

    llmk::Ring<kStages> ring;
    if (threadIdx.x == 0) {  // the producer
        for (int tile = 0; tile < tiles; ++tile, ring.next()) {
            llmk::mbarrier_wait_parity(empty + ring.stage, ring.parity ^ 1);
            llmk::mbarrier_arrive_expect_tx(full + ring.stage, sizeof(buffer[0]));
            llmk::tma_load(buffer[ring.stage], &x_map, full + ring.stage, 0, tile * kRows, 0);
        }
    } else if (threadIdx.x >= 32) {  // the consumer warp
        const int lane = threadIdx.x % 32;
        for (int tile = 0; tile < tiles; ++tile, ring.next()) {
            llmk::mbarrier_wait_parity(full + ring.stage, ring.parity);
            for (int i = lane; i < kRows * kColumns / 2; i += 32) {
                buffer[ring.stage][i] = __hadd2(buffer[ring.stage][i], buffer[ring.stage][i]);
            }
            llmk::fence_proxy_async();
            __syncwarp();  // all lanes have written and fenced
            if (lane == 0) {
                llmk::tma_store(&out_map, buffer[ring.stage], 0, tile * kRows, 0);
                llmk::cp_async_bulk_commit_group();
                llmk::cp_async_bulk_wait_group_read<0>();  // TMA has read the tile: it may be overwritten
                llmk::mbarrier_arrive(empty + ring.stage);
            }
        }
    }
}

extern "C" void double_rows(const __half* x, __half* out, int rows, cudaStream_t stream) {
    CUtensorMap x_map, out_map;
    if (llmk::make_tensor_map(&x_map, x, kColumns, rows, 1, kColumns, 8, kRows) != cudaSuccess) return;
    if (llmk::make_tensor_map(&out_map, out, kColumns, rows, 1, kColumns, 8, kRows) != cudaSuccess) return;
    double_tiles<<<1, 64, 0, stream>>>(x_map, out_map, (rows + kRows - 1) / kRows);
}
