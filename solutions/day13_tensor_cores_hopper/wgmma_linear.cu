// y = x w^T on Hopper's tensor cores: TMA loads a ring of tiles, and two warpgroups multiply.
//
// Two neighboring blocks are a cluster and compute 256 rows by COLUMNS columns of y, each 128 of the rows. Both need the
// same tile of w: each loads one half of it, and TMA multicasts it to both. In a block,
//   - one thread of warpgroup 0 only loads: 128 x 64 of x and its half of COLUMNS x 64 of w, kStages tiles ahead,
//   - warpgroups 1 and 2 multiply, 64 x COLUMNS each, with accumulators in registers, and store through shared memory.
// 256 columns need the least traffic. Products with too few such tiles for all SMs take tiles of 128 or 64 columns.
// Blocks are persistent: while a consumer stores its last tile, the producer loads the next ones.
//
//   x: [rows, in]     w: [out, in]     y: [rows, out]     in and out are multiples of 8, and in is not 0
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "llmk/mbarrier.cuh"
#include "llmk/mma.cuh"
#include "llmk/tma.cuh"
#include "llmk/wgmma.cuh"

constexpr int kRows = 128;  // rows of y per block, 64 per warpgroup
constexpr int kDepth = 64;  // columns of a tile of x and w: 128 bytes
constexpr int kCluster = 2;
constexpr int kThreads = 3 * 128;
constexpr int kPanel = 8;  // rows of tiles per panel: clusters that work at the same time share tiles of w in L2

constexpr int kOutBytes = 2 * 16 * 64;  // bytes of one of a warp's two staging buffers: 16 x 64 elements of y

// The ring of tiles of x [kRows, kDepth] and w [COLUMNS, kDepth] in shared memory.
template <int COLUMNS>
struct Tiles {
    static constexpr int kStages = COLUMNS == 256 ? 4 : COLUMNS == 128 ? 6 : 8;
    static constexpr int kStageBytes = 2 * kDepth * (kRows + COLUMNS);
    static constexpr int kSharedBytes = 1024 + kStages * kStageBytes + 16 * kOutBytes + 2 * kStages * 8;
};

// Compute the row and column of the i-th tile: panels of kPanel rows of tiles, each column by column.
__device__ __forceinline__ void tile_of(int i, int tile_rows, int tile_columns, int& row, int& column) {
    const int panel = i / (kPanel * tile_columns), first = panel * kPanel;
    const int high = min(kPanel, tile_rows - first), within = i - first * tile_columns;
    row = first + within % high;
    column = within / high;
}

template <typename T, int COLUMNS>
__global__ void __cluster_dims__(kCluster, 1, 1) __launch_bounds__(kThreads, 1)
    linear_kernel(const __grid_constant__ CUtensorMap x_map, const __grid_constant__ CUtensorMap w_map,
                  const __grid_constant__ CUtensorMap y_map, int rows, int in, int out) {
    constexpr int kStages = Tiles<COLUMNS>::kStages, kStageBytes = Tiles<COLUMNS>::kStageBytes;
    extern __shared__ unsigned char shared[];
    unsigned char* tiles = shared + (1024 - llmk::shared_address(shared) % 1024) % 1024;
    unsigned char* out_tiles = tiles + kStages * kStageBytes;
    uint64_t* full = reinterpret_cast<uint64_t*>(out_tiles + 16 * kOutBytes);  // [kStages]: the tile has arrived
    uint64_t* empty = full + kStages;  // [kStages] mbarriers: both blocks of the cluster have used their tiles

    const int block = blockIdx.x % kCluster, cluster = blockIdx.x / kCluster, clusters = gridDim.x / kCluster;
    // Broadcast from one lane, so that nvcc knows that the value is the same in all lanes of a warp.
    const int warpgroup = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0);
    if (threadIdx.x == 0) {
        for (int s = 0; s < kStages; ++s) {
            llmk::mbarrier_init(full + s, 1);
            llmk::mbarrier_init(empty + s, 2 * kCluster);
        }
        llmk::fence_mbarrier_init();
    }
    llmk::cluster_sync();

    const int tile_rows = (rows + kCluster * kRows - 1) / (kCluster * kRows);
    const int tile_columns = (out + COLUMNS - 1) / COLUMNS;
    const int steps = (in + kDepth - 1) / kDepth;
    llmk::Ring<kStages> ring;
    if (warpgroup == 0) {
        llmk::setmaxnreg_dec<40>();
        if (threadIdx.x == 0) {
            for (int i = cluster; i < tile_rows * tile_columns; i += clusters) {
                int row, column;
                tile_of(i, tile_rows, tile_columns, row, column);
                for (int k = 0; k < steps; ++k, ring.next()) {
                    unsigned char* x_tile = tiles + ring.stage * kStageBytes;
                    unsigned char* w_half = x_tile + 2 * kDepth * (kRows + block * COLUMNS / kCluster);
                    llmk::mbarrier_wait_parity(empty + ring.stage, ring.parity ^ 1);
                    llmk::mbarrier_arrive_expect_tx(full + ring.stage, kStageBytes);
                    llmk::tma_load(x_tile, &x_map, full + ring.stage, k * kDepth, (row * kCluster + block) * kRows, 0);
                    llmk::tma_load_multicast(w_half, &w_map, full + ring.stage, k * kDepth,
                                             column * COLUMNS + block * COLUMNS / kCluster, 0, (1 << kCluster) - 1);
                }
            }
        }
    } else {
        llmk::setmaxnreg_inc<232>();
        const int consumer = warpgroup - 1, thread = threadIdx.x % 128, warp = thread / 32, lane = thread % 32;
        const uint64_t own_x = llmk::make_smem_desc(tiles + consumer * 2 * kDepth * 64);
        const uint64_t all_w = llmk::make_smem_desc(tiles + 2 * kDepth * kRows);
        unsigned char* own_out = out_tiles + (consumer * 4 + warp) * 2 * kOutBytes;
        float sums[COLUMNS / 2];
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
                if (k == 0) {
                    // Do these divisions while wgmma runs. nvcc would move them to the stores, where nothing overlaps
                    // with them.
                    tile_of(i, tile_rows, tile_columns, row, column);
                    asm volatile("" : "+r"(row), "+r"(column));
                }
                // After this wait only this step's wgmma is pending, so the wgmma of the previous step is complete.
                llmk::wgmma_wait_group<1>();
                if (k > 0 && thread < kCluster) {
                    llmk::mbarrier_arrive_cluster(empty + (ring.stage + kStages - 1) % kStages, thread);
                }
            }
            llmk::wgmma_wait_group<0>();
            if (thread < kCluster) llmk::mbarrier_arrive_cluster(empty + (ring.stage + kStages - 1) % kStages, thread);

            // Store 64 columns at a time, each warp by itself: to swizzled shared memory, and from there by TMA.
#pragma unroll
            for (int piece = 0; piece < COLUMNS / 64; ++piece) {
                unsigned char* target = own_out + piece % 2 * kOutBytes;
                // The store that used this buffer: the last but one, or the last where all use buffer 0.
                if (lane == 0) llmk::cp_async_bulk_wait_group_read<(COLUMNS > 64)>();
                __syncwarp();
#pragma unroll
                for (int c = 0; c < 4; ++c) {  // 16 columns each
                    const float* s = sums + piece * 32 + c * 8;
                    const unsigned values[4] = {llmk::pack_pair<T>(s[0], s[1]), llmk::pack_pair<T>(s[2], s[3]),
                                                llmk::pack_pair<T>(s[4], s[5]), llmk::pack_pair<T>(s[6], s[7])};
                    const int r = lane % 16, chunk = 2 * c + lane / 16;
                    llmk::stmatrix_x4(values, target + r * 128 + ((chunk ^ (r % 8)) * 16));
                }
                llmk::fence_proxy_async();
                __syncwarp();
                if (lane == 0) {
                    llmk::tma_store(&y_map, target, column * COLUMNS + piece * 64,
                                    (row * kCluster + block) * kRows + consumer * 64 + warp * 16, 0);
                    llmk::cp_async_bulk_commit_group();
                }
            }
        }
        if (lane == 0) llmk::cp_async_bulk_wait_group_read<0>();
    }
    llmk::cluster_sync();  // no block ends while another may still access its shared memory
}

// Return the number of tiles of y, and how many of them each cluster computes at least.
static int count_tiles(int rows, int out, int columns, int most_clusters, int& rounds) {
    const int tiles = (rows + kCluster * kRows - 1) / (kCluster * kRows) * ((out + columns - 1) / columns);
    rounds = (tiles + most_clusters - 1) / most_clusters;
    return tiles;
}

template <typename T, int COLUMNS>
static void launch(const T* x, const T* w, T* y, int rows, int in, int out, int most_clusters, cudaStream_t stream) {
    CUtensorMap x_map, w_map, y_map;
    if (llmk::make_tensor_map(&x_map, x, in, rows, 1, in, 8, kRows) != cudaSuccess) return;
    if (llmk::make_tensor_map(&w_map, w, in, out, 1, in, 8, COLUMNS / kCluster) != cudaSuccess) return;
    if (llmk::make_tensor_map(&y_map, y, out, rows, 1, out, 8, 16) != cudaSuccess) return;

    int rounds;
    const int tiles = count_tiles(rows, out, COLUMNS, most_clusters, rounds);
    const int clusters = (tiles + rounds - 1) / rounds;  // the fewest clusters that take this number of rounds
    constexpr int kShared = Tiles<COLUMNS>::kSharedBytes;
    cudaFuncSetAttribute(linear_kernel<T, COLUMNS>, cudaFuncAttributeMaxDynamicSharedMemorySize, kShared);
    linear_kernel<T, COLUMNS><<<kCluster * clusters, kThreads, kShared, stream>>>(x_map, w_map, y_map, rows, in, out);
}

template <typename T>
static void linear(const T* x, const T* w, T* y, int rows, int in, int out, cudaStream_t stream) {
    if (rows == 0 || out == 0) return;
    int device, sms;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
    // A round of tiles takes as long as its columns, and as 32 more: the tile of x, the start and the end.
    int best = 256, least = 0;
    for (const int columns : {256, 128, 64}) {
        int rounds;
        count_tiles(rows, out, columns, sms / kCluster, rounds);
        const int cost = rounds * (columns + 32);
        if (columns == 256 || cost < least) best = columns, least = cost;
    }
    const auto chosen = best == 256 ? launch<T, 256> : best == 128 ? launch<T, 128> : launch<T, 64>;
    chosen(x, w, y, rows, in, out, sms / kCluster, stream);
}

extern "C" void wgmma_linear_f16(const __half* x, const __half* w, __half* y, int rows, int in_features,
                                 int out_features, cudaStream_t stream) {
    linear(x, w, y, rows, in_features, out_features, stream);
}

extern "C" void wgmma_linear_bf16(const __nv_bfloat16* x, const __nv_bfloat16* w, __nv_bfloat16* y, int rows,
                                  int in_features, int out_features, cudaStream_t stream) {
    linear(x, w, y, rows, in_features, out_features, stream);
}
