// y = x w^T on Blackwell's tensor cores (sm_100a), step 2: two blocks multiply together, and each warp has a role. A
// cluster of two blocks computes 256 x 256 of y. Each block loads its 128 rows of x and 128 of the 256 rows of w,
// kStages tiles ahead. One thread of the first block issues mma instructions of 256 x 256 for both. Each block then has
// 128 x 256 accumulators in its tensor memory.
//
//   x: [rows, in]     w: [out, in]     y: [rows, out]     in and out are multiples of 8, and in is not 0
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "llmk/mbarrier.cuh"
#include "llmk/tcgen05.cuh"
#include "llmk/tma.cuh"

constexpr int kRows = 128, kColumns = 256, kDepth = 64, kStages = 4;
constexpr int kXBytes = 2 * kRows * kDepth, kStageBytes = kXBytes + 2 * (kColumns / 2) * kDepth;
constexpr int kSharedBytes = 1024 + kStages * kStageBytes + (2 * kStages + 1) * 8 + 8;

__global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(128, 1)
    linear_kernel(const __grid_constant__ CUtensorMap x_map, const __grid_constant__ CUtensorMap w_map,
                  __nv_bfloat16* y, int rows, int in, int out) {
    extern __shared__ unsigned char shared[];
    unsigned char* tiles = shared + (1024 - llmk::shared_address(shared) % 1024) % 1024;
    uint64_t* full =
        reinterpret_cast<uint64_t*>(tiles + kStages * kStageBytes);  // [kStages]: both blocks' tiles have arrived
    uint64_t* empty = full + kStages;                                // [kStages]: the mma has read the tiles
    uint64_t* complete = empty + kStages;
    unsigned* taken = reinterpret_cast<unsigned*>(complete + 1);
    const int block = blockIdx.x % 2, warp = threadIdx.x / 32;
    const int row0 = blockIdx.x * kRows, column0 = blockIdx.y * kColumns;
    if (threadIdx.x == 0) {
        for (int s = 0; s < kStages; ++s) {
            llmk::mbarrier_init(full + s, 1);
            llmk::mbarrier_init(empty + s, 1);
        }
        llmk::mbarrier_init(complete, 1);
        llmk::fence_mbarrier_init();
    }
    if (warp == 2) llmk::tcgen05_alloc<2>(taken, kColumns);
    llmk::cluster_sync();
    const unsigned accumulators = *taken;

    const int steps = (in + kDepth - 1) / kDepth;
    llmk::Ring<kStages> ring;
    if (threadIdx.x == 0) {  // the producer, in each block
        for (int k = 0; k < steps; ++k, ring.next()) {
            unsigned char* x_tile = tiles + ring.stage * kStageBytes;
            llmk::mbarrier_wait_parity(empty + ring.stage, ring.parity ^ 1);
            if (block == 0) llmk::mbarrier_arrive_expect_tx(full + ring.stage, 2 * kStageBytes);
            llmk::tma_load_2cta(x_tile, &x_map, full + ring.stage, k * kDepth, row0, 0, 0);
            llmk::tma_load_2cta(x_tile + kXBytes, &w_map, full + ring.stage, k * kDepth, column0 + block * kColumns / 2,
                                0, 0);
        }
    } else if (threadIdx.x == 32 && block == 0) {  // the mma thread, in the first block only
        for (int k = 0; k < steps; ++k, ring.next()) {
            const unsigned char* x_tile = tiles + ring.stage * kStageBytes;
            llmk::mbarrier_wait_parity(full + ring.stage, ring.parity);
            const uint64_t a = llmk::make_tcgen05_smem_desc(x_tile), b = llmk::make_tcgen05_smem_desc(x_tile + kXBytes);
            constexpr unsigned kind = llmk::make_instr_desc<__nv_bfloat16>(2 * kRows, kColumns);
            for (int part = 0; part < kDepth / 16; ++part) {
                llmk::tcgen05_mma<2>(accumulators, a + 2 * part, b + 2 * part, kind, k > 0 || part > 0);
            }
            llmk::tcgen05_commit<2>(empty + ring.stage);
        }
        llmk::tcgen05_commit<2>(complete);
    }
    __syncwarp();
    llmk::mbarrier_wait_parity(complete, 0);
    llmk::tcgen05_fence_after_thread_sync();

    const int row = row0 + threadIdx.x;
    for (int first = 0; first < kColumns; first += 32) {
        float sums[32];
        llmk::tcgen05_ld(sums, accumulators + llmk::tmem_lane_offset() + first);
        llmk::tcgen05_wait_ld();
        for (int c = 0; c < 32; ++c) {
            const int column = column0 + first + c;
            if (row < rows && column < out) y[static_cast<long long>(row) * out + column] = __float2bfloat16(sums[c]);
        }
    }
    llmk::cluster_sync();  // no block ends while the other may still access it
    if (warp == 2) llmk::tcgen05_dealloc<2>(accumulators, kColumns);
}

extern "C" void linear(const __nv_bfloat16* x, const __nv_bfloat16* w, __nv_bfloat16* y, int rows, int in, int out,
                       cudaStream_t stream) {
    if (rows == 0 || out == 0) return;
    CUtensorMap x_map, w_map;
    if (llmk::make_tensor_map(&x_map, x, in, rows, 1, in, 8, kRows) != cudaSuccess) return;
    if (llmk::make_tensor_map(&w_map, w, in, out, 1, in, 8, kColumns / 2) != cudaSuccess) return;
    cudaFuncSetAttribute(linear_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
    const dim3 grid((rows + 2 * kRows - 1) / (2 * kRows) * 2, (out + kColumns - 1) / kColumns);
    linear_kernel<<<grid, 128, kSharedBytes, stream>>>(x_map, w_map, y, rows, in, out);
}
