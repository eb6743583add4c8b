// y = x w^T in FP8 with a scale for each 1 x 128 of x and each 128 x 128 of w: sums of 128 of k in the tensor cores, all
// others in f32 registers.
//
//   x: [rows, in]     x_scales: [rows, groups]     groups = ceil(in / 128)
//   w: [out, in]      w_scales: [ceil(out / 128), groups]     y: [rows, out]
//
// A block computes 128 x 128 of y, two warpgroups 64 x 128 each. One adds its partial sums to its registers while the
// other one's wgmma run. Two neighboring blocks are a cluster: they have the same columns, and each loads half of their
// tile of w for both.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "llmk/fp8.cuh"
#include "llmk/mbarrier.cuh"
#include "llmk/tma.cuh"
#include "llmk/wgmma.cuh"

constexpr int kTile = 128;  // rows and columns of y per block, and k per stage
constexpr int kTileBytes = kTile * kTile;
constexpr int kStages = 6, kCluster = 2, kPanel = 8;
constexpr int kStoreBytes = 8 * 2 * 2048;  // two places of 16 x 64 of y for each of eight warps
constexpr int kSharedBytes = 1024 + kStages * 2 * kTileBytes + kStoreBytes + 2 * kStages * 8;

// The tiles of a cluster, one after another. Panels of kPanel rows of tiles are walked column by column, so that
// clusters share tiles of w in L2.
struct Walk {
    int high, wide, index, stride;  // in tiles of a cluster: 256 rows, 128 columns

    __device__ __forceinline__ bool valid() const { return index < high * wide; }
    __device__ __forceinline__ void next() { index += stride; }
    __device__ __forceinline__ void place(int& row, int& column) const {
        const int panel = index / (kPanel * wide), within = index % (kPanel * wide);
        const int rows_here = min(kPanel, high - panel * kPanel);
        row = (panel * kPanel + within % rows_here) * kCluster * kTile;
        column = within / rows_here * kTile;
    }
};

__global__ void __cluster_dims__(kCluster, 1, 1) __launch_bounds__(384, 1)
    block_gemm(const __grid_constant__ CUtensorMap x_map, const __grid_constant__ CUtensorMap w_map,
               const __grid_constant__ CUtensorMap y_map, const float* __restrict__ x_scales,
               const float* __restrict__ w_scales, int rows, int groups, int high, int wide) {
    extern __shared__ unsigned char shared[];
    unsigned char* x_tiles = shared + (1024 - llmk::shared_address(shared) % 1024) % 1024;
    unsigned char* w_tiles = x_tiles + kStages * kTileBytes;
    unsigned char* stores = w_tiles + kStages * kTileBytes;
    uint64_t* full = reinterpret_cast<uint64_t*>(stores + kStoreBytes);
    uint64_t* empty = full + kStages;

    const int rank = blockIdx.x % kCluster;
    Walk walk = {high, wide, static_cast<int>(blockIdx.x / kCluster), static_cast<int>(gridDim.x / kCluster)};
    llmk::Ring<kStages> ring;
    if (threadIdx.x < kStages) {
        llmk::mbarrier_init(full + threadIdx.x, 1);
        llmk::mbarrier_init(empty + threadIdx.x, 2 * kCluster);
        llmk::fence_mbarrier_init();
    }
    llmk::cluster_sync();

    const int role = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0);
    if (role == 2) {
        llmk::setmaxnreg_dec<40>();
        for (; threadIdx.x == 256 && walk.valid(); walk.next()) {
            int row, column;
            walk.place(row, column);
            for (int group = 0; group < groups; ++group, ring.next()) {
                const int half = rank * kTile / kCluster;  // of w: these rows of its tile, for both blocks
                llmk::mbarrier_wait_parity(empty + ring.stage, ring.parity ^ 1);
                llmk::mbarrier_arrive_expect_tx(full + ring.stage, 2 * kTileBytes);
                llmk::tma_load(x_tiles + ring.stage * kTileBytes, &x_map, full + ring.stage, group * kTile,
                               row + rank * kTile, 0);
                llmk::tma_load_multicast(w_tiles + ring.stage * kTileBytes + half * kTile, &w_map, full + ring.stage,
                                         group * kTile, column + half, 0, (1 << kCluster) - 1);
            }
        }
    } else {
        llmk::setmaxnreg_inc<232>();
        const int thread = threadIdx.x % 128, lane = thread % 32, warp = threadIdx.x / 32;
        for (; walk.valid(); walk.next()) {
            int row, column;
            walk.place(row, column);
            row += rank * kTile + warp * 16;
            // The scales of this thread's two rows, and of the block's columns.
            const float* upper = x_scales + static_cast<size_t>(min(row + lane / 4, rows - 1)) * groups;
            const float* lower = x_scales + static_cast<size_t>(min(row + lane / 4 + 8, rows - 1)) * groups;
            const float* columns = w_scales + static_cast<size_t>(column / kTile) * groups;
            float partial[64], sums[64] = {};
            for (int group = 0; group < groups; ++group, ring.next()) {
                const float scale = columns[group], of_upper = upper[group], of_lower = lower[group];
                const uint64_t a = llmk::make_smem_desc(x_tiles + ring.stage * kTileBytes + role * kTileBytes / 2);
                const uint64_t b = llmk::make_smem_desc(w_tiles + ring.stage * kTileBytes);
                llmk::mbarrier_wait_parity(full + ring.stage, ring.parity);
                llmk::wgmma_fence();
#pragma unroll
                for (int part = 0; part < 4; ++part) {
                    llmk::wgmma_ss_e4m3(partial, a + 2 * part, b + 2 * part, part > 0);
                }
                llmk::wgmma_commit_group();
                llmk::wgmma_wait_group<0>();
                if (thread < kCluster) llmk::mbarrier_arrive_cluster(empty + ring.stage, thread);
                const float two[2] = {scale * of_upper, scale * of_lower};
#pragma unroll
                for (int i = 0; i < 64; ++i) sums[i] += two[i / 2 % 2] * partial[i];
            }
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                if (lane == 0) llmk::cp_async_bulk_wait_group_read<1>();  // the copy from this place is complete
                __syncwarp();
                llmk::tma_store_bf16(&y_map, stores + (2 * warp + half) * 2048, sums + 32 * half, column + 64 * half,
                                     row);
            }
        }
        if (lane == 0) llmk::cp_async_bulk_wait_group_read<0>();
    }
    llmk::cluster_sync();
}

extern "C" void fp8_block_gemm(const unsigned char* x, const unsigned char* w, const float* x_scales,
                               const float* w_scales, __nv_bfloat16* y, int rows, int in_features, int out_features,
                               cudaStream_t stream) {
    if (rows == 0 || out_features == 0) return;
    CUtensorMap x_map, w_map, y_map;
    if (llmk::make_tensor_map_u8(&x_map, x, in_features, rows, kTile) != cudaSuccess ||
        llmk::make_tensor_map_u8(&w_map, w, in_features, out_features, kTile / kCluster) != cudaSuccess ||
        llmk::make_tensor_map(&y_map, y, out_features, rows, 1, out_features, 8, 16) != cudaSuccess) {
        return;
    }
    int device, sms;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
    const int high = (rows + kCluster * kTile - 1) / (kCluster * kTile), wide = (out_features + kTile - 1) / kTile;
    const int clusters = high * wide < sms / kCluster ? high * wide : sms / kCluster;
    cudaFuncSetAttribute(block_gemm, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
    block_gemm<<<clusters * kCluster, 384, kSharedBytes, stream>>>(x_map, w_map, y_map, x_scales, w_scales, rows,
                                                                   (in_features + kTile - 1) / kTile, high, wide);
}
