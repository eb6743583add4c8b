// y = silu(x gate_w^T) * (x up_w^T) in one kernel: the solution of wgmma_linear with two weights and another epilogue.
//
// Two neighboring blocks are a cluster and compute 256 rows by 128 columns of y, each 128 of the rows. A tile of w has
// 128 rows of gate_w and below them the same 128 rows of up_w. One wgmma multiplies all 256, so a thread has the gates
// and the ups of its elements of y in its own registers, and neither of them goes to memory.
//
//   x: [rows, in]     gate_w, up_w: [features, in]     y: [rows, features]
//   in and features are multiples of 8, and in is not 0
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "llmk/mbarrier.cuh"
#include "llmk/mma.cuh"
#include "llmk/tma.cuh"
#include "llmk/wgmma.cuh"

constexpr int kRows = 128;      // rows of y per block, 64 per warpgroup
constexpr int kFeatures = 128;  // columns of y per block
constexpr int kDepth = 64;      // columns of a tile of x and w: 128 bytes
constexpr int kCluster = 2;
constexpr int kThreads = 3 * 128;
constexpr int kPanel = 8;  // rows of tiles per panel: clusters that work at the same time share tiles of w in L2

constexpr int kStages = 4;
constexpr int kStageBytes = 2 * kDepth * (kRows + 2 * kFeatures);
constexpr int kOutBytes = 2 * 16 * 64;  // bytes of one of a warp's two staging buffers: 16 x 64 elements of y
constexpr int kSharedBytes = 1024 + kStages * kStageBytes + 16 * kOutBytes + 2 * kStages * 8;

// Compute the row and column of the i-th tile: panels of kPanel rows of tiles, each column by column.
__device__ __forceinline__ void tile_of(int i, int tile_rows, int tile_columns, int& row, int& column) {
    const int panel = i / (kPanel * tile_columns), first = panel * kPanel;
    const int high = min(kPanel, tile_rows - first), within = i - first * tile_columns;
    row = first + within % high;
    column = within / high;
}

// For a gate below -88, __expf(-gate) is infinity, and the quotient is 0, which is the limit.
__device__ __forceinline__ float gated(float gate, float up) { return __fdividef(gate, 1.0f + __expf(-gate)) * up; }

template <typename T>
__global__ void __cluster_dims__(kCluster, 1, 1) __launch_bounds__(kThreads, 1)
    swiglu_kernel(const __grid_constant__ CUtensorMap x_map, const __grid_constant__ CUtensorMap gate_map,
                  const __grid_constant__ CUtensorMap up_map, const __grid_constant__ CUtensorMap y_map, int rows,
                  int in, int features) {
    extern __shared__ unsigned char shared[];
    unsigned char* tiles = shared + (1024 - llmk::shared_address(shared) % 1024) % 1024;
    unsigned char* out_tiles = tiles + kStages * kStageBytes;
    uint64_t* full = reinterpret_cast<uint64_t*>(out_tiles + 16 * kOutBytes);  // [kStages]: the tile has arrived
    uint64_t* empty = full + kStages;  // [kStages] mbarriers: both blocks of the cluster have used their tiles

    const int block = blockIdx.x % kCluster, cluster = blockIdx.x / kCluster, clusters = gridDim.x / kCluster;
    const int warpgroup = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0);  // so that nvcc knows that it is uniform
    if (threadIdx.x == 0) {
        for (int s = 0; s < kStages; ++s) {
            llmk::mbarrier_init(full + s, 1);
            llmk::mbarrier_init(empty + s, 2 * kCluster);
        }
        llmk::fence_mbarrier_init();
    }
    llmk::cluster_sync();

    const int tile_rows = (rows + kCluster * kRows - 1) / (kCluster * kRows);
    const int tile_columns = (features + kFeatures - 1) / kFeatures;
    const int steps = (in + kDepth - 1) / kDepth;
    llmk::Ring<kStages> ring;
    if (warpgroup == 0) {
        llmk::setmaxnreg_dec<40>();
        if (threadIdx.x == 0) {
            for (int i = cluster; i < tile_rows * tile_columns; i += clusters) {
                int row, column;
                tile_of(i, tile_rows, tile_columns, row, column);
                const int half = block * kFeatures / kCluster;  // the features of the tile that this block loads
                const int feature = column * kFeatures + half;
                for (int k = 0; k < steps; ++k, ring.next()) {
                    unsigned char* x_tile = tiles + ring.stage * kStageBytes;
                    unsigned char* gate_half = x_tile + 2 * kDepth * (kRows + half);
                    unsigned char* up_half = gate_half + 2 * kDepth * kFeatures;
                    uint64_t* arrived = full + ring.stage;
                    llmk::mbarrier_wait_parity(empty + ring.stage, ring.parity ^ 1);
                    llmk::mbarrier_arrive_expect_tx(arrived, kStageBytes);
                    llmk::tma_load(x_tile, &x_map, arrived, k * kDepth, (row * kCluster + block) * kRows, 0);
                    constexpr int kAll = (1 << kCluster) - 1;
                    llmk::tma_load_multicast(gate_half, &gate_map, arrived, k * kDepth, feature, 0, kAll);
                    llmk::tma_load_multicast(up_half, &up_map, arrived, k * kDepth, feature, 0, kAll);
                }
            }
        }
    } else {
        llmk::setmaxnreg_inc<232>();
        const int consumer = warpgroup - 1, thread = threadIdx.x % 128, warp = thread / 32, lane = thread % 32;
        const uint64_t own_x = llmk::make_smem_desc(tiles + consumer * 2 * kDepth * 64);
        const uint64_t all_w = llmk::make_smem_desc(tiles + 2 * kDepth * kRows);
        unsigned char* own_out = out_tiles + (consumer * 4 + warp) * 2 * kOutBytes;
        float sums[kFeatures];  // the first half are gates, the second half ups
        for (int i = cluster; i < tile_rows * tile_columns; i += clusters) {
            int row = 0, column = 0;
            for (int k = 0; k < steps; ++k, ring.next()) {
                llmk::mbarrier_wait_parity(full + ring.stage, ring.parity);
                const uint64_t a = own_x + ring.stage * (kStageBytes / 16), b = all_w + ring.stage * (kStageBytes / 16);
                llmk::wgmma_fence();
#pragma unroll
                for (int part = 0; part < kDepth / 16; ++part) {
                    llmk::wgmma_ss<T>(sums, a + 2 * part, b + 2 * part, k > 0 || part > 0);
                }
                llmk::wgmma_commit_group();
                if (k == 0) {  // these divisions overlap with wgmma here, as in wgmma_linear
                    tile_of(i, tile_rows, tile_columns, row, column);
                    asm volatile("" : "+r"(row), "+r"(column));
                }
                llmk::wgmma_wait_group<1>();  // the wgmma of the previous step is complete
                if (k > 0 && thread < kCluster) {
                    llmk::mbarrier_arrive_cluster(empty + (ring.stage + kStages - 1) % kStages, thread);
                }
            }
            llmk::wgmma_wait_group<0>();
            if (thread < kCluster) llmk::mbarrier_arrive_cluster(empty + (ring.stage + kStages - 1) % kStages, thread);

            // Store 64 columns at a time, each warp by itself: to swizzled shared memory, and from there by TMA.
#pragma unroll
            for (int piece = 0; piece < kFeatures / 64; ++piece) {
                unsigned char* target = own_out + piece % 2 * kOutBytes;
                if (lane == 0) llmk::cp_async_bulk_wait_group_read<1>();  // the last store but one, from this buffer
                __syncwarp();
#pragma unroll
                for (int c = 0; c < 4; ++c) {  // 16 columns each
                    unsigned values[4];
#pragma unroll
                    for (int pair = 0; pair < 4; ++pair) {
                        const float* gate = sums + piece * 32 + c * 8 + pair * 2;
                        const float* up = gate + kFeatures / 2;
                        values[pair] = llmk::pack_pair<T>(gated(gate[0], up[0]), gated(gate[1], up[1]));
                    }
                    const int r = lane % 16, chunk = 2 * c + lane / 16;
                    llmk::stmatrix_x4(values, target + r * 128 + ((chunk ^ (r % 8)) * 16));
                }
                llmk::fence_proxy_async();
                __syncwarp();
                if (lane == 0) {
                    llmk::tma_store(&y_map, target, column * kFeatures + piece * 64,
                                    (row * kCluster + block) * kRows + consumer * 64 + warp * 16, 0);
                    llmk::cp_async_bulk_commit_group();
                }
            }
        }
        if (lane == 0) llmk::cp_async_bulk_wait_group_read<0>();
    }
    llmk::cluster_sync();  // no block ends while another may still access its shared memory
}

template <typename T>
static void linear_swiglu(const T* x, const T* gate_w, const T* up_w, T* y, int rows, int in, int features,
                          cudaStream_t stream) {
    if (rows == 0 || features == 0) return;
    int device, sms;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
    CUtensorMap x_map, gate_map, up_map, y_map;
    if (llmk::make_tensor_map(&x_map, x, in, rows, 1, in, 8, kRows) != cudaSuccess) return;
    if (llmk::make_tensor_map(&gate_map, gate_w, in, features, 1, in, 8, kFeatures / kCluster) != cudaSuccess) return;
    if (llmk::make_tensor_map(&up_map, up_w, in, features, 1, in, 8, kFeatures / kCluster) != cudaSuccess) return;
    if (llmk::make_tensor_map(&y_map, y, features, rows, 1, features, 8, 16) != cudaSuccess) return;

    const int tiles = (rows + kCluster * kRows - 1) / (kCluster * kRows) * ((features + kFeatures - 1) / kFeatures);
    const int most = sms / kCluster, rounds = (tiles + most - 1) / most;
    const int clusters = (tiles + rounds - 1) / rounds;  // the fewest clusters that take this number of rounds
    cudaFuncSetAttribute(swiglu_kernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
    swiglu_kernel<T>
        <<<kCluster * clusters, kThreads, kSharedBytes, stream>>>(x_map, gate_map, up_map, y_map, rows, in, features);
}

extern "C" void linear_swiglu_f16(const __half* x, const __half* gate_w, const __half* up_w, __half* y, int rows,
                                  int in_features, int features, cudaStream_t stream) {
    linear_swiglu(x, gate_w, up_w, y, rows, in_features, features, stream);
}

extern "C" void linear_swiglu_bf16(const __nv_bfloat16* x, const __nv_bfloat16* gate_w, const __nv_bfloat16* up_w,
                                   __nv_bfloat16* y, int rows, int in_features, int features, cudaStream_t stream) {
    linear_swiglu(x, gate_w, up_w, y, rows, in_features, features, stream);
}
