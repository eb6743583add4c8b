// y = x w^T by tcgen05 without pairs of blocks (CTA pairs): a block computes a 128 x 256 tile of y. Thread 0 copies,
// thread 32 multiplies, then all four warps load the accumulators and store 16 bytes of a row at a time.
//
//   x: [rows, in]     w: [out, in]     y: [rows, out]     in and out are multiples of 8, and in is not 0
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "llmk/mbarrier.cuh"
#include "llmk/mma.cuh"
#include "llmk/tcgen05.cuh"
#include "llmk/tma.cuh"

constexpr int kRows = 128, kColumns = 256, kDepth = 64, kStages = 4;
constexpr int kXBytes = 2 * kRows * kDepth, kStageBytes = kXBytes + 2 * kColumns * kDepth;
constexpr int kSharedBytes = 1024 + kStages * kStageBytes + (2 * kStages + 1) * 8 + 8;

template <typename T>
__global__ void __launch_bounds__(128, 1)
    linear_kernel(const __grid_constant__ CUtensorMap x_map, const __grid_constant__ CUtensorMap w_map, T* y, int rows,
                  int in, int out) {
    extern __shared__ unsigned char shared[];
    unsigned char* tiles = shared + (1024 - llmk::shared_address(shared) % 1024) % 1024;
    uint64_t* full = reinterpret_cast<uint64_t*>(tiles + kStages * kStageBytes);
    uint64_t* empty = full + kStages;
    uint64_t* ready = empty + kStages;
    unsigned* taken = reinterpret_cast<unsigned*>(ready + 1);
    if (threadIdx.x == 0) {
        for (int s = 0; s < kStages; ++s) {
            llmk::mbarrier_init(full + s, 1);
            llmk::mbarrier_init(empty + s, 1);
        }
        llmk::mbarrier_init(ready, 1);
        llmk::fence_mbarrier_init();
    }
    if (threadIdx.x >= 96) llmk::tcgen05_alloc<1>(taken, kColumns);
    __syncthreads();
    const unsigned accumulators = *taken;
    const int row0 = blockIdx.y * kRows, column0 = blockIdx.x * kColumns, steps = (in + kDepth - 1) / kDepth;
    llmk::Ring<kStages> ring;
    if (threadIdx.x == 0) {
        for (int k = 0; k < steps; ++k, ring.next()) {
            unsigned char* x_tile = tiles + ring.stage * kStageBytes;
            llmk::mbarrier_wait_parity(empty + ring.stage, ring.parity ^ 1);
            llmk::mbarrier_arrive_expect_tx(full + ring.stage, kStageBytes);
            llmk::tma_load(x_tile, &x_map, full + ring.stage, k * kDepth, row0, 0);
            llmk::tma_load(x_tile + kXBytes, &w_map, full + ring.stage, k * kDepth, column0, 0);
        }
    } else if (threadIdx.x == 32) {
        for (int k = 0; k < steps; ++k, ring.next()) {
            llmk::mbarrier_wait_parity(full + ring.stage, ring.parity);
            const uint64_t a = llmk::make_tcgen05_smem_desc(tiles + ring.stage * kStageBytes), b = a + kXBytes / 16;
            for (int part = 0; part < kDepth / 16; ++part) {
                llmk::tcgen05_mma<1>(accumulators, a + 2 * part, b + 2 * part,
                                     llmk::make_instr_desc<T>(kRows, kColumns), k > 0 || part > 0);
            }
            llmk::tcgen05_commit<1>(empty + ring.stage);
        }
        llmk::tcgen05_commit<1>(ready);
    }
    __syncwarp();
    llmk::mbarrier_wait_parity(ready, 0);
    llmk::tcgen05_fence_after_thread_sync();
    const int row = row0 + threadIdx.x;
    for (int first = 0; first < kColumns && column0 + first < out; first += 32) {
        float s[32];
        llmk::tcgen05_ld(s, accumulators + llmk::tmem_lane_offset() + first);
        llmk::tcgen05_wait_ld();
        for (int c = 0; c < 32; c += 8) {
            const int column = column0 + first + c;
            if (row >= rows || column >= out) continue;
            *reinterpret_cast<uint4*>(y + static_cast<long long>(row) * out + column) =
                make_uint4(llmk::pack_pair<T>(s[c], s[c + 1]), llmk::pack_pair<T>(s[c + 2], s[c + 3]),
                           llmk::pack_pair<T>(s[c + 4], s[c + 5]), llmk::pack_pair<T>(s[c + 6], s[c + 7]));
        }
    }
    __syncthreads();
    if (threadIdx.x >= 96) llmk::tcgen05_dealloc<1>(accumulators, kColumns);
}

template <typename T>
static void linear(const T* x, const T* w, T* y, int rows, int in, int out, cudaStream_t stream) {
    if (rows == 0 || out == 0) return;
    CUtensorMap x_map, w_map;
    if (llmk::make_tensor_map(&x_map, x, in, rows, 1, in, 8, kRows) != cudaSuccess) return;
    if (llmk::make_tensor_map(&w_map, w, in, out, 1, in, 8, kColumns) != cudaSuccess) return;
    cudaFuncSetAttribute(linear_kernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
    const dim3 grid((out + kColumns - 1) / kColumns, (rows + kRows - 1) / kRows);
    linear_kernel<T><<<grid, 128, kSharedBytes, stream>>>(x_map, w_map, y, rows, in, out);
}
