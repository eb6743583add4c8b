// y = x w^T on Blackwell's tensor cores: two blocks of a cluster multiply together, and each warp has a role.
//
// A pair of blocks computes 256 rows by 256 columns of y, each 128 of the rows. In each block,
//   - one thread of warp 0 only loads: 128 x 64 of x and 128 x 64 of w, its half of the columns, kStages tiles ahead,
//   - warps 2 to 5 load accumulators from tensor memory, 32 rows each, and store them through shared memory;
// and one thread of warp 1 of the even block issues the mma of both. Tensor memory holds two tiles of accumulators:
// while one is stored, the other is accumulated. Blocks are persistent.
//
//   x: [rows, in]     w: [out, in]     y: [rows, out]     in and out are multiples of 8, and in is not 0
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "llmk/mbarrier.cuh"
#include "llmk/mma.cuh"
#include "llmk/tcgen05.cuh"
#include "llmk/tma.cuh"

constexpr int kRows = 128;  // rows of y per block
constexpr int kColumns = 256;
constexpr int kDepth = 64;  // columns of a tile of x and w: 128 bytes
constexpr int kStages = 5;
constexpr int kThreads = 6 * 32;

constexpr int kXBytes = 2 * kRows * kDepth;
constexpr int kStageBytes = kXBytes + 2 * (kColumns / 2) * kDepth;
constexpr int kOutBytes = 2 * 32 * 64;  // a staging buffer of 32 x 64 of y; each warp has two
constexpr int kSharedBytes = 1024 + kStages * kStageBytes + 8 * kOutBytes + (2 * kStages + 4) * 8 + 8;

template <typename T>
__global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(kThreads, 1)
    linear_kernel(const __grid_constant__ CUtensorMap x_map, const __grid_constant__ CUtensorMap w_map,
                  const __grid_constant__ CUtensorMap y_map, int rows, int in, int out) {
    extern __shared__ unsigned char shared[];
    unsigned char* tiles = shared + (1024 - llmk::shared_address(shared) % 1024) % 1024;
    unsigned char* out_tiles = tiles + kStages * kStageBytes;
    uint64_t* full =
        reinterpret_cast<uint64_t*>(out_tiles + 8 * kOutBytes);  // [kStages] mbarriers: both blocks' tiles have arrived
    uint64_t* empty = full + kStages;                            // [kStages]: the mma that reads the tiles is complete
    uint64_t* ready = empty + kStages;                           // [2]: a tile of accumulators is complete
    uint64_t* drained = ready + 2;  // [2]: all warps of both blocks have loaded the accumulators
    unsigned* taken = reinterpret_cast<unsigned*>(drained + 2);

    const int block = blockIdx.x % 2, pair = blockIdx.x / 2, pairs = gridDim.x / 2;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x == 0) {
        for (int s = 0; s < kStages; ++s) {
            llmk::mbarrier_init(full + s, 1);
            llmk::mbarrier_init(empty + s, 1);
        }
        for (int set = 0; set < 2; ++set) {
            llmk::mbarrier_init(ready + set, 1);
            llmk::mbarrier_init(drained + set, 2 * 4);
        }
        llmk::fence_mbarrier_init();
    }
    if (warp == 2) llmk::tcgen05_alloc<2>(taken, 2 * kColumns);
    llmk::cluster_sync();
    const unsigned accumulators = *taken;

    const int tile_rows = (rows + 2 * kRows - 1) / (2 * kRows), tile_columns = (out + kColumns - 1) / kColumns;
    const int steps = (in + kDepth - 1) / kDepth;
    llmk::Ring<kStages> ring;
    llmk::Ring<2> sets;
    if (warp == 0) {
        if (lane == 0) {
            for (int i = pair; i < tile_rows * tile_columns; i += pairs) {
                const int row0 = (i % tile_rows * 2 + block) * kRows, column0 = i / tile_rows * kColumns;
                for (int k = 0; k < steps; ++k, ring.next()) {
                    unsigned char* x_tile = tiles + ring.stage * kStageBytes;
                    llmk::mbarrier_wait_parity(empty + ring.stage, ring.parity ^ 1);
                    if (block == 0) llmk::mbarrier_arrive_expect_tx(full + ring.stage, 2 * kStageBytes);
                    llmk::tma_load_2cta(x_tile, &x_map, full + ring.stage, k * kDepth, row0, 0, 0);
                    llmk::tma_load_2cta(x_tile + kXBytes, &w_map, full + ring.stage, k * kDepth,
                                        column0 + block * kColumns / 2, 0, 0);
                }
            }
        }
    } else if (warp == 1) {
        if (lane == 0 && block == 0) {
            constexpr unsigned kind = llmk::make_instr_desc<T>(2 * kRows, kColumns);
            for (int i = pair; i < tile_rows * tile_columns; i += pairs, sets.next()) {
                llmk::mbarrier_wait_parity(drained + sets.stage, sets.parity ^ 1);
                llmk::tcgen05_fence_after_thread_sync();
                for (int k = 0; k < steps; ++k, ring.next()) {
                    llmk::mbarrier_wait_parity(full + ring.stage, ring.parity);
                    const unsigned char* x_tile = tiles + ring.stage * kStageBytes;
                    const uint64_t a = llmk::make_tcgen05_smem_desc(x_tile),
                                   b = llmk::make_tcgen05_smem_desc(x_tile + kXBytes);
#pragma unroll
                    for (int part = 0; part < kDepth / 16; ++part) {
                        llmk::tcgen05_mma<2>(accumulators + sets.stage * kColumns, a + 2 * part, b + 2 * part, kind,
                                             k > 0 || part > 0);
                    }
                    llmk::tcgen05_commit<2>(empty + ring.stage);
                }
                llmk::tcgen05_commit<2>(ready + sets.stage);
            }
        }
    } else {
        unsigned char* own_out = out_tiles + (warp - 2) * 2 * kOutBytes;
        for (int i = pair; i < tile_rows * tile_columns; i += pairs, sets.next()) {
            const int row0 = (i % tile_rows * 2 + block) * kRows + warp % 4 * 32, column0 = i / tile_rows * kColumns;
            llmk::mbarrier_wait_parity(ready + sets.stage, sets.parity);
            llmk::tcgen05_fence_after_thread_sync();
            for (int piece = 0; piece < kColumns / 64; ++piece) {
                unsigned char* target = own_out + piece % 2 * kOutBytes;
                if (lane == 0) llmk::cp_async_bulk_wait_group_read<1>();  // the store that used this buffer
                __syncwarp();
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    float s[32];
                    llmk::tcgen05_ld(
                        s, accumulators + llmk::tmem_lane_offset() + sets.stage * kColumns + piece * 64 + half * 32);
                    llmk::tcgen05_wait_ld();
#pragma unroll
                    for (int c = 0; c < 4; ++c) {  // 8 columns of this lane's row, swizzled as in y_map
                        const int chunk = half * 4 + c;
                        *reinterpret_cast<uint4*>(target + lane * 128 + ((chunk ^ (lane % 8)) * 16)) = make_uint4(
                            llmk::pack_pair<T>(s[8 * c], s[8 * c + 1]), llmk::pack_pair<T>(s[8 * c + 2], s[8 * c + 3]),
                            llmk::pack_pair<T>(s[8 * c + 4], s[8 * c + 5]),
                            llmk::pack_pair<T>(s[8 * c + 6], s[8 * c + 7]));
                    }
                }
                llmk::fence_proxy_async();
                if (piece == kColumns / 64 - 1) llmk::tcgen05_fence_before_thread_sync();
                __syncwarp();
                if (lane == 0) {
                    if (piece == kColumns / 64 - 1) llmk::mbarrier_arrive_cluster(drained + sets.stage, 0);
                    llmk::tma_store(&y_map, target, column0 + piece * 64, row0, 0);
                    llmk::cp_async_bulk_commit_group();
                }
            }
        }
        if (lane == 0) llmk::cp_async_bulk_wait_group_read<0>();
    }
    __syncwarp();
    llmk::cluster_sync();  // no block ends while the other may still access its memory
    if (warp == 2) llmk::tcgen05_dealloc<2>(accumulators, 2 * kColumns);
}

template <typename T>
static void linear(const T* x, const T* w, T* y, int rows, int in, int out, cudaStream_t stream) {
    if (rows == 0 || out == 0) return;
    CUtensorMap x_map, w_map, y_map;
    if (llmk::make_tensor_map(&x_map, x, in, rows, 1, in, 8, kRows) != cudaSuccess) return;
    if (llmk::make_tensor_map(&w_map, w, in, out, 1, in, 8, kColumns / 2) != cudaSuccess) return;
    if (llmk::make_tensor_map(&y_map, y, out, rows, 1, out, 8, 32) != cudaSuccess) return;

    int device, sms;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
    const int tiles = (rows + 2 * kRows - 1) / (2 * kRows) * ((out + kColumns - 1) / kColumns);
    const int pairs = tiles < sms / 2 ? tiles : sms / 2;
    cudaFuncSetAttribute(linear_kernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
    linear_kernel<T><<<2 * pairs, kThreads, kSharedBytes, stream>>>(x_map, w_map, y_map, rows, in, out);
}

extern "C" void tcgen05_linear_f16(const __half* x, const __half* w, __half* y, int rows, int in_features,
                                   int out_features, cudaStream_t stream) {
    linear(x, w, y, rows, in_features, out_features, stream);
}

extern "C" void tcgen05_linear_bf16(const __nv_bfloat16* x, const __nv_bfloat16* w, __nv_bfloat16* y, int rows,
                                    int in_features, int out_features, cudaStream_t stream) {
    linear(x, w, y, rows, in_features, out_features, stream);
}
