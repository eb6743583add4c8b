// y = x w^T in FP8 with a scale for each 1 x 128 of x and each 128 x 128 of w: tensor cores sum over 128 values of k,
// and all other sums are in f32 registers.
//
//   x: [rows, in]     x_scales: [rows, groups]     groups = ceil(in / 128)
//   w: [out, in]      w_scales: [ceil(out / 128), groups]     y: [rows, out]
//
// A block computes 192 x 128 of y, three warpgroups 64 x 128 each. One adds its partial sums to its registers while the
// wgmma of the other two run: with only two warpgroups, the tensor cores wait for the additions. Two neighboring blocks
// are a cluster: they have the same rows, and each loads half of their tile of x for both. If y has few tiles, blocks of
// 128 x 128 form clusters of eight that divide k, and add their sums through distributed shared memory.
#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "llmk/fp8.cuh"
#include "llmk/mbarrier.cuh"
#include "llmk/mma.cuh"
#include "llmk/tma.cuh"
#include "llmk/wgmma.cuh"

constexpr int kTile = 128;                        // columns of y per block, and values of k per stage
constexpr int kGroups = 3, kHigh = kGroups * 64;  // warpgroups that multiply; rows of y per block
constexpr int kXBytes = kHigh * kTile, kTileBytes = kTile * kTile;
constexpr int kStages = 4, kCluster = 2, kPanel = 8;
constexpr int kStoreBytes = kGroups * 4 * 2 * 2048;  // two staging buffers of 16 x 64 of y for each warp
constexpr int kSharedBytes = 1024 + kStages * (kXBytes + kTileBytes) + kStoreBytes + 2 * kStages * 8;

// For the kernel with few tiles, which has tiles of 128 rows.
constexpr int kPartStages = 6, kPartBytes = 1024 + kPartStages * (2 * kTileBytes + 2 * 8);
constexpr int kParts = 8, kPitch = kTile + 4;  // parts of k; floats from row to row of the sums in shared memory

// Multiply one group of k on the tensor cores, and add the results, times the scales of the thread's two rows, to the
// sums in registers. Call `release` when the tiles have been read.
template <typename Release>
__device__ __forceinline__ void add_group(float (&sums)[64], const unsigned char* x_tile, const unsigned char* w_tile,
                                          float upper, float lower, Release release) {
    const uint64_t a = llmk::make_smem_desc(x_tile), b = llmk::make_smem_desc(w_tile);
    float partial[64];
    llmk::wgmma_fence();
#pragma unroll
    for (int part = 0; part < 4; ++part) llmk::wgmma_ss_e4m3(partial, a + 2 * part, b + 2 * part, part > 0);
    llmk::wgmma_commit_group();
    llmk::wgmma_wait_group<0>();
    release();
    const float two[2] = {upper, lower};
#pragma unroll
    for (int i = 0; i < 64; ++i) sums[i] += two[i / 2 % 2] * partial[i];
}

// The order of a cluster's tiles: panels of kPanel rows of tiles, each column by column, so that clusters share tiles
// of w in L2.
struct Walk {
    int high, wide, index, stride;  // all count tiles of a cluster: 192 rows, 256 columns

    __device__ __forceinline__ bool valid() const { return index < high * wide; }
    __device__ __forceinline__ void next() { index += stride; }
    __device__ __forceinline__ void place(int& row, int& column) const {
        const int panel = index / (kPanel * wide), within = index % (kPanel * wide);
        const int rows_here = min(kPanel, high - panel * kPanel);
        row = (panel * kPanel + within % rows_here) * kHigh;
        column = within / rows_here * kCluster * kTile;
    }
};

__global__ void __cluster_dims__(kCluster, 1, 1) __launch_bounds__(kGroups * 128 + 128, 1)
    block_gemm(const __grid_constant__ CUtensorMap x_map, const __grid_constant__ CUtensorMap w_map,
               const __grid_constant__ CUtensorMap y_map, const float* __restrict__ x_scales,
               const float* __restrict__ w_scales, int rows, int groups, int high, int tiles_wide) {
    extern __shared__ unsigned char shared[];
    unsigned char* x_tiles = shared + (1024 - llmk::shared_address(shared) % 1024) % 1024;
    unsigned char* w_tiles = x_tiles + kStages * kXBytes;
    unsigned char* stores = w_tiles + kStages * kTileBytes;
    uint64_t* full = reinterpret_cast<uint64_t*>(stores + kStoreBytes);
    uint64_t* empty = full + kStages;

    const int rank = blockIdx.x % kCluster;
    Walk walk = {high, (tiles_wide + kCluster - 1) / kCluster, static_cast<int>(blockIdx.x / kCluster),
                 static_cast<int>(gridDim.x / kCluster)};
    llmk::Ring<kStages> ring;
    if (threadIdx.x < kStages) {
        llmk::mbarrier_init(full + threadIdx.x, 1);
        llmk::mbarrier_init(empty + threadIdx.x, kGroups * kCluster);
        llmk::fence_mbarrier_init();
    }
    llmk::cluster_sync();

    const int role = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0);
    if (role == kGroups) {
        llmk::setmaxnreg_dec<24>();
        for (; threadIdx.x == kGroups * 128 && walk.valid(); walk.next()) {
            int row, column;
            walk.place(row, column);
            for (int group = 0; group < groups; ++group, ring.next()) {
                const int half = rank * kHigh / kCluster;  // first row of this block's half of the tile of x
                llmk::mbarrier_wait_parity(empty + ring.stage, ring.parity ^ 1);
                llmk::mbarrier_arrive_expect_tx(full + ring.stage, kXBytes + kTileBytes);
                llmk::tma_load(w_tiles + ring.stage * kTileBytes, &w_map, full + ring.stage, group * kTile,
                               column + rank * kTile, 0);
                llmk::tma_load_multicast(x_tiles + ring.stage * kXBytes + half * kTile, &x_map, full + ring.stage,
                                         group * kTile, row + half, 0, (1 << kCluster) - 1);
            }
        }
    } else {
        llmk::setmaxnreg_inc<160>();
        const int thread = threadIdx.x % 128, lane = thread % 32, warp = threadIdx.x / 32;
        for (; walk.valid(); walk.next()) {
            int row, column;
            walk.place(row, column);
            row += warp * 16;
            column += rank * kTile;
            // The scales of this thread's two rows, and of the block's columns. Those of the next group are loaded while
            // this one is multiplied.
            const float* upper = x_scales + static_cast<size_t>(min(row + lane / 4, rows - 1)) * groups;
            const float* lower = x_scales + static_cast<size_t>(min(row + lane / 4 + 8, rows - 1)) * groups;
            const float* columns = w_scales + static_cast<size_t>(min(column / kTile, tiles_wide - 1)) * groups;
            float sums[64] = {};
            float next[3] = {columns[0], upper[0], lower[0]};
            for (int group = 0; group < groups; ++group, ring.next()) {
                const float scale = next[0], of_upper = next[1], of_lower = next[2];
                const int ahead = min(group + 1, groups - 1);
                next[0] = columns[ahead];
                next[1] = upper[ahead];
                next[2] = lower[ahead];
                llmk::mbarrier_wait_parity(full + ring.stage, ring.parity);
                add_group(sums, x_tiles + ring.stage * kXBytes + role * 64 * kTile, w_tiles + ring.stage * kTileBytes,
                          scale * of_upper, scale * of_lower, [&] {
                              if (thread < kCluster) llmk::mbarrier_arrive_cluster(empty + ring.stage, thread);
                          });
            }
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                if (lane == 0) llmk::cp_async_bulk_wait_group_read<1>();  // the last copy from this buffer
                __syncwarp();
                llmk::tma_store_bf16(&y_map, stores + (2 * warp + half) * 2048, sums + 32 * half, column + 64 * half,
                                     row);
            }
        }
        if (lane == 0) llmk::cp_async_bulk_wait_group_read<0>();
    }
    llmk::cluster_sync();
}

// The kernel for few tiles: eight blocks compute one tile; each block sums over every eighth group of k.
__global__ void __cluster_dims__(kParts, 1, 1) __launch_bounds__(384, 1)
    divided_gemm(const __grid_constant__ CUtensorMap x_map, const __grid_constant__ CUtensorMap w_map,
                 __nv_bfloat16* __restrict__ y, const float* __restrict__ x_scales, const float* __restrict__ w_scales,
                 int rows, int out, int groups) {
    extern __shared__ unsigned char shared[];
    unsigned char* tiles = shared + (1024 - llmk::shared_address(shared) % 1024) % 1024;
    uint64_t* full = reinterpret_cast<uint64_t*>(tiles + kPartStages * 2 * kTileBytes);
    uint64_t* empty = full + kPartStages;
    const int part = blockIdx.x % kParts, row0 = blockIdx.y * kTile, column0 = blockIdx.x / kParts * kTile;
    if (threadIdx.x < kPartStages) {
        llmk::mbarrier_init(full + threadIdx.x, 1);
        llmk::mbarrier_init(empty + threadIdx.x, 2);
        llmk::fence_mbarrier_init();
    }
    __syncthreads();

    const int role = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0);
    llmk::Ring<kPartStages> ring;
    float sums[64] = {};
    const int thread = threadIdx.x % 128, own_row = role * 64 + thread / 32 * 16 + thread % 32 / 4;
    if (role == 2) {
        for (int group = part; thread == 0 && group < groups; group += kParts, ring.next()) {
            unsigned char* stage = tiles + ring.stage * 2 * kTileBytes;
            llmk::mbarrier_wait_parity(empty + ring.stage, ring.parity ^ 1);
            llmk::mbarrier_arrive_expect_tx(full + ring.stage, 2 * kTileBytes);
            llmk::tma_load(stage, &x_map, full + ring.stage, group * kTile, row0, 0);
            llmk::tma_load(stage + kTileBytes, &w_map, full + ring.stage, group * kTile, column0, 0);
        }
    } else {
        const float* upper = x_scales + static_cast<size_t>(min(row0 + own_row, rows - 1)) * groups;
        const float* lower = x_scales + static_cast<size_t>(min(row0 + own_row + 8, rows - 1)) * groups;
        const float* columns = w_scales + static_cast<size_t>(column0 / kTile) * groups;
        for (int group = part; group < groups; group += kParts, ring.next()) {
            const float scale = columns[group], of_upper = upper[group], of_lower = lower[group];
            unsigned char* stage = tiles + ring.stage * 2 * kTileBytes;
            llmk::mbarrier_wait_parity(full + ring.stage, ring.parity);
            add_group(sums, stage + role * kTileBytes / 2, stage + kTileBytes, scale * of_upper, scale * of_lower, [&] {
                if (thread == 0) llmk::mbarrier_arrive(empty + ring.stage);
            });
        }
    }

    // All tiles have been read, so the sums may overwrite them. Each block adds 16 rows of the sums of all eight
    // blocks.
    __syncthreads();
    float* all_sums = reinterpret_cast<float*>(tiles);  // [kTile][kPitch]
    if (role < 2) {
#pragma unroll
        for (int i = 0; i < 64; i += 2) {
            float* to = all_sums + (own_row + i / 2 % 2 * 8) * kPitch + i / 4 * 8 + thread % 4 * 2;
            *reinterpret_cast<float2*>(to) = make_float2(sums[i], sums[i + 1]);
        }
    }
    const cooperative_groups::cluster_group cluster = cooperative_groups::this_cluster();
    cluster.sync();
    for (int i = threadIdx.x; i < kTile / kParts * kTile / 4; i += 384) {
        const int row = part * (kTile / kParts) + i / (kTile / 4), column = i % (kTile / 4) * 4;
        float4 total = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
        for (int block = 0; block < kParts; ++block) {
            const float* theirs = cluster.map_shared_rank(all_sums, block) + row * kPitch + column;
            const float4 value = *reinterpret_cast<const float4*>(theirs);
            total = make_float4(total.x + value.x, total.y + value.y, total.z + value.z, total.w + value.w);
        }
        if (row0 + row < rows && column0 + column < out) {
            *reinterpret_cast<uint2*>(y + static_cast<size_t>(row0 + row) * out + column0 + column) = make_uint2(
                llmk::pack_pair<__nv_bfloat16>(total.x, total.y), llmk::pack_pair<__nv_bfloat16>(total.z, total.w));
        }
    }
    cluster.sync();  // no block ends while another reads its sums
}

extern "C" void fp8_block_gemm(const unsigned char* x, const unsigned char* w, const float* x_scales,
                               const float* w_scales, __nv_bfloat16* y, int rows, int in_features, int out_features,
                               cudaStream_t stream) {
    if (rows == 0 || out_features == 0) return;
    const int tiles_wide = (out_features + kTile - 1) / kTile, tiles_high = (rows + kTile - 1) / kTile;
    const int groups = (in_features + kTile - 1) / kTile;
    int device, sms;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
    const bool divided = tiles_wide * tiles_high * 4 <= sms && groups >= 2 * kParts;

    CUtensorMap x_map, w_map, y_map;
    if (llmk::make_tensor_map_u8(&x_map, x, in_features, rows, divided ? kTile : kHigh / kCluster) != cudaSuccess ||
        llmk::make_tensor_map_u8(&w_map, w, in_features, out_features, kTile) != cudaSuccess ||
        llmk::make_tensor_map(&y_map, y, out_features, rows, 1, out_features, 8, 16) != cudaSuccess) {
        return;
    }
    if (divided) {
        cudaFuncSetAttribute(divided_gemm, cudaFuncAttributeMaxDynamicSharedMemorySize, kPartBytes);
        divided_gemm<<<dim3(tiles_wide * kParts, tiles_high), 384, kPartBytes, stream>>>(
            x_map, w_map, y, x_scales, w_scales, rows, out_features, groups);
        return;
    }
    const int high = (rows + kHigh - 1) / kHigh, tiles = high * ((tiles_wide + kCluster - 1) / kCluster);
    const int clusters = tiles < sms / kCluster ? tiles : sms / kCluster;
    cudaFuncSetAttribute(block_gemm, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
    block_gemm<<<clusters * kCluster, kGroups * 128 + 128, kSharedBytes, stream>>>(
        x_map, w_map, y_map, x_scales, w_scales, rows, groups, high, tiles_wide);
}
