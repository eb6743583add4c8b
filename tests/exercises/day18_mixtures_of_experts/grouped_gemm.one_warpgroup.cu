// Another design: no warp specialization and no persistent blocks. One warpgroup computes a 128 x 128 tile of y as two
// products of 64 rows. The grid has a block for every possible tile. Each block searches the experts' offsets for its
// tile.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "llmk/mbarrier.cuh"
#include "llmk/mma.cuh"
#include "llmk/tma.cuh"
#include "llmk/wgmma.cuh"

constexpr int kRows = 128, kColumns = 128, kDepth = 64;
constexpr int kStageBytes = 2 * kDepth * (kRows + kColumns);
constexpr int kSharedBytes = 1024 + 2 * kStageBytes + 2 * 8;

template <typename T>
__device__ __forceinline__ void store(const float (&sums)[kColumns / 2], T* y, int row, int column0, int end, int out) {
#pragma unroll
    for (int g = 0; g < kColumns / 8; ++g) {
        const int column = column0 + 8 * g + threadIdx.x % 4 * 2;
        for (int h = 0; h < 2; ++h) {
            if (column < out && row + 8 * h < end) {
                *reinterpret_cast<unsigned*>(y + static_cast<long long>(row + 8 * h) * out + column) =
                    llmk::pack_pair<T>(sums[4 * g + 2 * h], sums[4 * g + 2 * h + 1]);
            }
        }
    }
}

template <typename T>
__global__ void __launch_bounds__(128, 2)
    one_tile_kernel(const __grid_constant__ CUtensorMap x_map, const __grid_constant__ CUtensorMap w_map,
                    const int* offsets, T* y, int experts, int in, int out) {
    extern __shared__ unsigned char shared[];
    unsigned char* tiles = shared + (1024 - llmk::shared_address(shared) % 1024) % 1024;
    uint64_t* arrived = reinterpret_cast<uint64_t*>(tiles + 2 * kStageBytes);  // [2]: one mbarrier per stage
    __shared__ int found[3];  // the tile's expert, its first row, the end of the expert's rows
    if (threadIdx.x == 0) {
        int left = blockIdx.y, expert = 0;
        for (; expert < experts; ++expert) {
            const int of_expert = (offsets[expert + 1] - offsets[expert] + kRows - 1) / kRows;
            if (left < of_expert) break;
            left -= of_expert;
        }
        found[0] = expert;
        found[1] = expert < experts ? offsets[expert] + left * kRows : 0;
        found[2] = expert < experts ? offsets[expert + 1] : 0;
        llmk::mbarrier_init(arrived, 1);
        llmk::mbarrier_init(arrived + 1, 1);
        llmk::fence_mbarrier_init();
    }
    __syncthreads();
    const int expert = found[0], row0 = found[1], end = found[2], column0 = blockIdx.x * kColumns;
    if (expert == experts) return;
    const bool two = row0 + 64 < end;
    auto copy = [&](int k, int stage) {
        llmk::mbarrier_arrive_expect_tx(arrived + stage, kStageBytes);
        llmk::tma_load(tiles + stage * kStageBytes, &x_map, arrived + stage, k, row0, 0);
        llmk::tma_load(tiles + stage * kStageBytes + 2 * kDepth * kRows, &w_map, arrived + stage, k, column0, expert);
    };
    if (threadIdx.x == 0) copy(0, 0);

    float upper[kColumns / 2], lower[kColumns / 2];
    llmk::Ring<2> ring;
    for (int k = 0; k < in; k += kDepth, ring.next()) {
        if (threadIdx.x == 0 && k + kDepth < in) copy(k + kDepth, ring.stage ^ 1);
        llmk::mbarrier_wait_parity(arrived + ring.stage, ring.parity);
        const uint64_t a = llmk::make_smem_desc(tiles + ring.stage * kStageBytes);
        const uint64_t b = a + 2 * kDepth * kRows / 16;
        llmk::wgmma_fence();
#pragma unroll
        for (int part = 0; part < kDepth / 16; ++part) {
            llmk::wgmma_ss<T>(upper, a + 2 * part, b + 2 * part, k > 0 || part > 0);
            if (two) {
                llmk::wgmma_ss<T>(lower, a + 2 * kDepth * 64 / 16 + 2 * part, b + 2 * part, k > 0 || part > 0);
            }
        }
        llmk::wgmma_commit_group();
        llmk::wgmma_wait_group<0>();
        __syncthreads();
    }
    const int row = row0 + threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
    store<T>(upper, y, row, column0, end, out);
    if (two) store<T>(lower, y, row + 64, column0, end, out);
}

template <typename T>
static void grouped_gemm(const T* x, const T* w, const int* offsets, T* y, int rows, int experts, int in, int out,
                         cudaStream_t stream) {
    if (rows == 0 || out == 0) return;
    CUtensorMap x_map, w_map;
    if (llmk::make_tensor_map(&x_map, x, in, rows, 1, in, 8, kRows) != cudaSuccess) return;
    if (llmk::make_tensor_map(&w_map, w, in, out, experts, in, static_cast<long long>(out) * in, kColumns) !=
        cudaSuccess) {
        return;
    }
    cudaFuncSetAttribute(one_tile_kernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
    const dim3 grid((out + kColumns - 1) / kColumns, rows / kRows + min(experts, rows));
    one_tile_kernel<T><<<grid, 128, kSharedBytes, stream>>>(x_map, w_map, offsets, y, experts, in, out);
}
