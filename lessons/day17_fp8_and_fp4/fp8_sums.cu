// Sums of products of e4m3 along k, by one warpgroup: y [64, 128] = a [64, k] b [128, k]^T.
//
// fp8_sums keeps all sums in the accumulators of wgmma. With `promote`, it adds them to f32 registers after each 128 of
// k and starts new ones.
#include <cuda_runtime.h>

#include "llmk/fp8.cuh"

constexpr int kRows = 64, kColumns = 128, kDepth = 128;
constexpr int kTileBytes = kDepth * (kRows + kColumns);

__global__ void __launch_bounds__(128)
    sums_kernel(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map, float* y, int k,
                bool promote) {
    extern __shared__ unsigned char shared[];
    unsigned char* tiles = shared + (1024 - llmk::shared_address(shared) % 1024) % 1024;
    uint64_t* arrived = reinterpret_cast<uint64_t*>(tiles + kTileBytes);
    if (threadIdx.x == 0) {
        llmk::mbarrier_init(arrived, 1);
        llmk::fence_mbarrier_init();
    }
    __syncthreads();
    const uint64_t a = llmk::make_smem_desc(tiles), b = llmk::make_smem_desc(tiles + kDepth * kRows);
    float partial[kColumns / 2], sums[kColumns / 2] = {};
    for (int step = 0; step < k / kDepth; ++step) {
        if (threadIdx.x == 0) {
            llmk::mbarrier_arrive_expect_tx(arrived, kTileBytes);
            llmk::tma_load(tiles, &a_map, arrived, step * kDepth, 0, 0);
            llmk::tma_load(tiles + kDepth * kRows, &b_map, arrived, step * kDepth, 0, 0);
        }
        llmk::mbarrier_wait_parity(arrived, step % 2);
        llmk::wgmma_fence();
#pragma unroll
        for (int part = 0; part < kDepth / 32; ++part) {
            llmk::wgmma_ss_e4m3(partial, a + 2 * part, b + 2 * part, part > 0 || (step > 0 && !promote));
        }
        llmk::wgmma_commit_group();
        llmk::wgmma_wait_group<0>();
        __syncthreads();
        if (promote || step == k / kDepth - 1) {
#pragma unroll
            for (int i = 0; i < kColumns / 2; ++i) sums[i] += partial[i];
        }
    }
    const int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;
#pragma unroll
    for (int i = 0; i < kColumns / 2; ++i) {
        y[(row + i / 2 % 2 * 8) * kColumns + column + i / 4 * 8 + i % 2] = sums[i];
    }
}

extern "C" void fp8_sums(const unsigned char* a, const unsigned char* b, float* y, int k, bool promote,
                         cudaStream_t stream) {
    CUtensorMap a_map, b_map;
    if (llmk::make_tensor_map_u8(&a_map, a, k, kRows, kRows) != cudaSuccess) return;
    if (llmk::make_tensor_map_u8(&b_map, b, k, kColumns, kColumns) != cudaSuccess) return;
    const int bytes = 1024 + kTileBytes + 8;
    cudaFuncSetAttribute(sums_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    sums_kernel<<<1, 128, bytes, stream>>>(a_map, b_map, y, k, promote);
}
