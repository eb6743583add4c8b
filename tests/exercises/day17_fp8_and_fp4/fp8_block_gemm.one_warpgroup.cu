// One warpgroup computes a 128 x 128 tile of y. The tile's two halves of 64 rows use the same registers for partial
// sums, one after the other.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "llmk/fp8.cuh"
#include "llmk/mbarrier.cuh"
#include "llmk/mma.cuh"
#include "llmk/tma.cuh"
#include "llmk/wgmma.cuh"

constexpr int kTile = 128, kBytes = kTile * 128, kStage = 2 * kBytes;

__global__ void __launch_bounds__(128)
    blocks_by_one_warpgroup(const __grid_constant__ CUtensorMap x_map, const __grid_constant__ CUtensorMap w_map,
                            const float* x_scales, const float* w_scales, __nv_bfloat16* y, int rows, int in, int out) {
    extern __shared__ unsigned char shared[];
    unsigned char* tiles = shared + (1024 - llmk::shared_address(shared) % 1024) % 1024;
    uint64_t* arrived = reinterpret_cast<uint64_t*>(tiles + 2 * kStage);
    auto fetch = [&](int k) {
        const int s = k / 128 % 2;
        llmk::mbarrier_arrive_expect_tx(arrived + s, kStage);
        llmk::tma_load(tiles + s * kStage, &x_map, arrived + s, k, blockIdx.y * kTile, 0);
        llmk::tma_load(tiles + s * kStage + kBytes, &w_map, arrived + s, k, blockIdx.x * kTile, 0);
    };
    if (threadIdx.x == 0) {
        for (int s = 0; s < 2; ++s) llmk::mbarrier_init(arrived + s, 1);
        llmk::fence_mbarrier_init();
        fetch(0);
    }
    __syncthreads();
    const int groups = (in + 127) / 128;
    const float* of_columns = w_scales + static_cast<size_t>(blockIdx.x) * groups;
    float half[2][64] = {}, partial[64];
    for (int k = 0; k < in; k += 128) {
        if (threadIdx.x == 0 && k + 128 < in) fetch(k + 128);
        const int s = k / 128 % 2;
        llmk::mbarrier_wait_parity(arrived + s, k / 256 % 2);
        const uint64_t a = llmk::make_smem_desc(tiles + s * kStage),
                       b = llmk::make_smem_desc(tiles + s * kStage + kBytes);
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            llmk::wgmma_fence();
#pragma unroll
            for (int part = 0; part < 8; part += 2) {
                llmk::wgmma_ss_e4m3(partial, a + h * kBytes / 32 + part, b + part, part);
            }
            llmk::wgmma_commit_group();
            llmk::wgmma_wait_group<0>();
            float scale[2];
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                const int row = blockIdx.y * kTile + h * 64 + threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4 + 8 * r;
                scale[r] = row < rows ? x_scales[static_cast<size_t>(row) * groups + k / 128] * of_columns[k / 128] : 0;
            }
#pragma unroll
            for (int i = 0; i < 64; ++i) half[h][i] += partial[i] * scale[i / 2 % 2];
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 64; ++i) {
        const int row = blockIdx.y * kTile + i / 32 * 64 + threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4 + i % 2 * 8;
        const int column = blockIdx.x * kTile + i % 32 / 2 * 8 + threadIdx.x % 4 * 2;
        if (row >= rows || column >= out) continue;
        const float* pair = half[i / 32] + i % 32 / 2 * 4 + i % 2 * 2;
        *reinterpret_cast<unsigned*>(y + static_cast<size_t>(row) * out + column) =
            llmk::pack_pair<__nv_bfloat16>(pair[0], pair[1]);
    }
}

extern "C" void fp8_block_gemm(const unsigned char* x, const unsigned char* w, const float* x_scales,
                               const float* w_scales, __nv_bfloat16* y, int rows, int in_features, int out_features,
                               cudaStream_t stream) {
    if (rows == 0 || out_features == 0) return;
    CUtensorMap x_map, w_map;
    if (llmk::make_tensor_map_u8(&x_map, x, in_features, rows, kTile) != cudaSuccess) return;
    if (llmk::make_tensor_map_u8(&w_map, w, in_features, out_features, kTile) != cudaSuccess) return;
    const int bytes = 1024 + 2 * kStage + 16;
    cudaFuncSetAttribute(blocks_by_one_warpgroup, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    const dim3 grid((out_features + kTile - 1) / kTile, (rows + kTile - 1) / kTile);
    blocks_by_one_warpgroup<<<grid, 128, bytes, stream>>>(x_map, w_map, x_scales, w_scales, y, rows, in_features,
                                                          out_features);
}
