// y = (x x_scales) (w w_scales)^T in FP8: TMA loads tiles of e4m3, wgmma multiplies them, and the scales of rows and
// columns are applied once, in the epilogue.
//
// Two neighboring blocks are a cluster and compute 256 x 256 of y. Warpgroup 0 of a block loads its 128 rows of x and
// half of the 256 rows of w, which TMA multicasts to both blocks. Warpgroups 1 and 2 multiply, 64 x 256 each.
//
//   x: [rows, in]     w: [out, in]     x_scales: [rows]     w_scales: [out]     y: [rows, out]
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "llmk/fp8.cuh"
#include "llmk/mbarrier.cuh"
#include "llmk/tma.cuh"
#include "llmk/wgmma.cuh"

constexpr int kCluster = 2, kStages = 4, kDepth = 128;  // kDepth e4m3 are 128 bytes, a row of a swizzled tile
constexpr int kRows = 128, kColumns = 256, kConsumerWarpgroups = 2;
constexpr int kRowBytes = kDepth;
constexpr int kXBytes = kRows * kRowBytes, kStageBytes = kXBytes + kColumns * kRowBytes;
constexpr int kPieceBytes = 16 * 128;  // a staging buffer of 16 x 64 of y; each warp has two
constexpr int kOutBytes = kConsumerWarpgroups * 4 * 2 * kPieceBytes;
constexpr int kSharedBytes = 1024 + kStages * kStageBytes + kOutBytes + 2 * kStages * 8;

struct Shape {
    int rows, in, out;
    int tile_rows, tile_columns;  // tiles of a cluster in y: rows and columns of tiles

    // Return the row and the column of the i-th tile. Eight rows of tiles are a panel, which is walked column by
    // column, so that clusters that run at the same time share tiles of w in L2.
    __device__ __forceinline__ int2 tile(int i) const {
        const int in_panel = 8 * tile_columns, first = i / in_panel * 8, high = min(8, tile_rows - first);
        return make_int2(first + i % in_panel % high, i % in_panel / high);
    }
};

__device__ __forceinline__ void produce(const CUtensorMap* x_map, const CUtensorMap* w_map, unsigned char* tiles,
                                        uint64_t* full, uint64_t* empty, const Shape& shape, int cluster, int clusters,
                                        int block) {
    llmk::Ring<kStages> ring;
    for (int i = cluster; i < shape.tile_rows * shape.tile_columns; i += clusters) {
        const int2 place = shape.tile(i);
        const int x_row = (place.x * kCluster + block) * kRows;
        const int w_row = place.y * kColumns + block * (kColumns / kCluster);
        for (int k = 0; k < shape.in; k += kDepth, ring.next()) {
            unsigned char* stage = tiles + ring.stage * kStageBytes;
            llmk::mbarrier_wait_parity(empty + ring.stage, ring.parity ^ 1);
            llmk::mbarrier_arrive_expect_tx(full + ring.stage, kStageBytes);
            llmk::tma_load(stage, x_map, full + ring.stage, k, x_row, 0);
            llmk::tma_load_multicast(stage + kXBytes + block * (kColumns / kCluster) * kRowBytes, w_map,
                                     full + ring.stage, k, w_row, 0, (1 << kCluster) - 1);
        }
    }
}

// Multiply the sums of a warp's 16 rows by the scales, 64 columns at a time, and store them.
__device__ __forceinline__ void scale_and_store(const float (&sums)[kColumns / 2], const float* x_scales,
                                                const float* w_scales, const CUtensorMap* y_map, unsigned char* out,
                                                const Shape& shape, int row, int column) {
    const int lane = threadIdx.x % 32, own_row = row + lane / 4, own_column = column + lane % 4 * 2;
    const float upper = own_row < shape.rows ? x_scales[own_row] : 0.0f;
    const float lower = own_row + 8 < shape.rows ? x_scales[own_row + 8] : 0.0f;
#pragma unroll
    for (int piece = 0; piece < kColumns / 64; ++piece) {
        float scaled[32];
#pragma unroll
        for (int g = 0; g < 8; ++g) {
            const int c = own_column + piece * 64 + g * 8;
            // out is a multiple of 8, so both columns exist or neither does.
            const float2 w_scale =
                c < shape.out ? *reinterpret_cast<const float2*>(w_scales + c) : make_float2(0.0f, 0.0f);
            const float* s = sums + piece * 32 + g * 4;
            scaled[4 * g] = s[0] * (upper * w_scale.x);
            scaled[4 * g + 1] = s[1] * (upper * w_scale.y);
            scaled[4 * g + 2] = s[2] * (lower * w_scale.x);
            scaled[4 * g + 3] = s[3] * (lower * w_scale.y);
        }
        if (lane == 0) llmk::cp_async_bulk_wait_group_read<1>();  // the previous copy from this buffer
        __syncwarp();
        llmk::tma_store_bf16(y_map, out + piece % 2 * kPieceBytes, scaled, column + piece * 64, row);
    }
}

__global__ void __cluster_dims__(kCluster, 1, 1) __launch_bounds__((1 + kConsumerWarpgroups) * 128, 1)
    gemm_kernel(const __grid_constant__ CUtensorMap x_map, const __grid_constant__ CUtensorMap w_map,
                const __grid_constant__ CUtensorMap y_map, const float* __restrict__ x_scales,
                const float* __restrict__ w_scales, const Shape shape) {
    extern __shared__ unsigned char shared[];
    unsigned char* tiles = shared + (1024 - llmk::shared_address(shared) % 1024) % 1024;
    unsigned char* out = tiles + kStages * kStageBytes;
    uint64_t* full = reinterpret_cast<uint64_t*>(out + kOutBytes);  // [kStages] mbarriers: the tiles have arrived
    uint64_t* empty = full + kStages;  // [kStages] mbarriers: all consumers of the cluster have used the tiles

    const int block = blockIdx.x % kCluster, cluster = blockIdx.x / kCluster, clusters = gridDim.x / kCluster;
    const int warpgroup = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0);
    if (threadIdx.x == 0) {
        for (int s = 0; s < kStages; ++s) {
            llmk::mbarrier_init(full + s, 1);
            llmk::mbarrier_init(empty + s, kConsumerWarpgroups * kCluster);
        }
        llmk::fence_mbarrier_init();
    }
    llmk::cluster_sync();

    if (warpgroup == 0) {
        llmk::setmaxnreg_dec<40>();
        if (threadIdx.x == 0) produce(&x_map, &w_map, tiles, full, empty, shape, cluster, clusters, block);
    } else {
        llmk::setmaxnreg_inc<232>();
        const int consumer = warpgroup - 1, thread = threadIdx.x % 128, warp = consumer * 4 + thread / 32;
        const uint64_t x_desc = llmk::make_smem_desc(tiles + consumer * 64 * kRowBytes);
        const uint64_t w_desc = llmk::make_smem_desc(tiles + kXBytes);
        llmk::Ring<kStages> ring;
        float sums[kColumns / 2];
        for (int i = cluster; i < shape.tile_rows * shape.tile_columns; i += clusters) {
            int previous = -1;  // the stage that wgmma still reads
            for (int k = 0; k < shape.in; k += kDepth, ring.next()) {
                llmk::mbarrier_wait_parity(full + ring.stage, ring.parity);
                const int offset = ring.stage * (kStageBytes / 16);
                llmk::wgmma_fence();
#pragma unroll
                for (int part = 0; part < kDepth / 32; ++part) {
                    llmk::wgmma_ss_e4m3(sums, x_desc + offset + 2 * part, w_desc + offset + 2 * part,
                                        k > 0 || part > 0);
                }
                llmk::wgmma_commit_group();
                llmk::wgmma_wait_group<1>();  // the wgmmas of the previous stage are complete
                if (previous >= 0 && thread < kCluster) llmk::mbarrier_arrive_cluster(empty + previous, thread);
                previous = ring.stage;
            }
            llmk::wgmma_wait_group<0>();
            if (thread < kCluster) llmk::mbarrier_arrive_cluster(empty + previous, thread);
            const int2 place = shape.tile(i);
            scale_and_store(sums, x_scales, w_scales, &y_map, out + warp * 2 * kPieceBytes, shape,
                            (place.x * kCluster + block) * kRows + warp * 16, place.y * kColumns);
        }
        if (thread % 32 == 0) llmk::cp_async_bulk_wait_group_read<0>();
    }
    llmk::cluster_sync();  // no block ends while the other may still write to its shared memory
}

extern "C" void fp8_gemm(const unsigned char* x, const unsigned char* w, const float* x_scales, const float* w_scales,
                         __nv_bfloat16* y, int rows, int in_features, int out_features, cudaStream_t stream) {
    if (rows == 0 || out_features == 0) return;
    CUtensorMap x_map, w_map, y_map;
    if (llmk::make_tensor_map_u8(&x_map, x, in_features, rows, kRows) != cudaSuccess) return;
    if (llmk::make_tensor_map_u8(&w_map, w, in_features, out_features, kColumns / kCluster) != cudaSuccess) return;
    if (llmk::make_tensor_map(&y_map, y, out_features, rows, 1, out_features, 8, 16) != cudaSuccess) return;

    Shape shape = {rows, in_features, out_features, 0, 0};
    shape.tile_rows = (rows + kCluster * kRows - 1) / (kCluster * kRows);
    shape.tile_columns = (out_features + kColumns - 1) / kColumns;
    int device, sms;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
    const int tiles = shape.tile_rows * shape.tile_columns, most = sms / kCluster;
    const int rounds = (tiles + most - 1) / most, clusters = (tiles + rounds - 1) / rounds;
    cudaFuncSetAttribute(gemm_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
    gemm_kernel<<<kCluster * clusters, (1 + kConsumerWarpgroups) * 128, kSharedBytes, stream>>>(
        x_map, w_map, y_map, x_scales, w_scales, shape);
}
