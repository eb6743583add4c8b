// Gate, up and SwiGLU of all experts in one kernel: y[r] = silu(x[r] g^T) * (x[r] u^T), g and u of the row's expert.
//
//   x: [rows, in]     w: [experts, 2 inter, in], g above u     y: [rows, inter]     offsets: [experts + 1]
//
// This is the kernel of grouped_gemm with another tile of w: 128 rows of g and the 128 rows of u that belong to them,
// below each other in shared memory. One wgmma of 256 columns multiplies both, and a lane's accumulators i and i + 64
// are the gate and the up of one element of y. So SwiGLU needs no exchange, and y is half as wide as the product.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>

#include "llmk/grouped_tiles.cuh"
#include "llmk/mbarrier.cuh"
#include "llmk/mma.cuh"
#include "llmk/tma.cuh"
#include "llmk/wgmma.cuh"

constexpr int kRows = 128;
constexpr int kColumns = 128;  // columns of y per tile; as many rows of g, and of u
constexpr int kDepth = 64;     // columns of a tile of x and w: 128 bytes
constexpr int kStages = 4;
constexpr int kThreads = 3 * 128;
constexpr int kMostExperts = 1024;

constexpr int kGateBytes = 2 * kDepth * kColumns;  // bytes of the tile of g; the tile of u follows it
constexpr int kStageBytes = 2 * kDepth * (kRows + 2 * kColumns);
constexpr int kOutBytes = 2 * 16 * 64;  // a staging buffer of 16 x 64 of y, one for each of eight warps
constexpr int kSharedBytes = 1024 + kStages * kStageBytes + 8 * kOutBytes + 2 * kStages * 8 + 4 * (kMostExperts + 1);

__device__ __forceinline__ float swiglu(float gate, float up) { return gate / (1.0f + __expf(-gate)) * up; }

using Tiles = llmk::GroupedTiles<kRows>;

template <typename T>
__global__ void __launch_bounds__(kThreads, 1)
    swiglu_kernel(const __grid_constant__ CUtensorMap x_map, const __grid_constant__ CUtensorMap w_map,
                  const __grid_constant__ CUtensorMap y_map, const int* __restrict__ offsets, T* y, int experts, int in,
                  int inter) {
    extern __shared__ unsigned char shared[];
    unsigned char* ring_tiles = shared + (1024 - llmk::shared_address(shared) % 1024) % 1024;
    unsigned char* out_tiles = ring_tiles + kStages * kStageBytes;
    uint64_t* full = reinterpret_cast<uint64_t*>(out_tiles + 8 * kOutBytes);  // [kStages]: the tiles have arrived
    uint64_t* empty = full + kStages;                           // [kStages]: both warpgroups have used the tiles
    int* first_tile = reinterpret_cast<int*>(empty + kStages);  // [experts + 1]

    const int tile_columns = (inter + kColumns - 1) / kColumns, steps = (in + kDepth - 1) / kDepth;
    const int warpgroup = __shfl_sync(llmk::kAllLanes, threadIdx.x / 128, 0);
    if (threadIdx.x == 0) {
        for (int s = 0; s < kStages; ++s) {
            llmk::mbarrier_init(full + s, 1);
            llmk::mbarrier_init(empty + s, 2);
        }
        llmk::fence_mbarrier_init();
    }
    if (threadIdx.x / 32 == 4) Tiles::count(first_tile, offsets, experts, tile_columns);
    __syncthreads();

    const int tiles = first_tile[experts];
    Tiles walk{offsets, first_tile, tile_columns};
    llmk::Ring<kStages> ring;
    if (warpgroup == 0) {
        llmk::setmaxnreg_dec<40>();
        if (threadIdx.x == 0) {
            for (int i = blockIdx.x; i < tiles; i += gridDim.x) {
                const llmk::GroupedTile tile = walk.find(i);
                for (int k = 0; k < steps; ++k, ring.next()) {
                    unsigned char* x_tile = ring_tiles + ring.stage * kStageBytes;
                    llmk::mbarrier_wait_parity(empty + ring.stage, ring.parity ^ 1);
                    llmk::mbarrier_arrive_expect_tx(full + ring.stage, kStageBytes);
                    llmk::tma_load(x_tile, &x_map, full + ring.stage, k * kDepth, tile.row, 0);
                    unsigned char* gate_tile = x_tile + 2 * kDepth * kRows;
                    llmk::tma_load(gate_tile, &w_map, full + ring.stage, k * kDepth, tile.column * kColumns,
                                   tile.expert);
                    llmk::tma_load(gate_tile + kGateBytes, &w_map, full + ring.stage, k * kDepth,
                                   inter + tile.column * kColumns, tile.expert);
                }
            }
        }
    } else {
        llmk::setmaxnreg_inc<232>();
        const int consumer = warpgroup - 1, thread = threadIdx.x % 128, warp = thread / 32, lane = thread % 32;
        const uint64_t own_x = llmk::make_smem_desc(ring_tiles + consumer * 2 * kDepth * 64);
        const uint64_t gate_and_up = llmk::make_smem_desc(ring_tiles + 2 * kDepth * kRows);
        unsigned char* own_out = out_tiles + (consumer * 4 + warp) * kOutBytes;
        float sums[kColumns];  // kColumns / 2 sums of gate, then as many of up
        for (int i = blockIdx.x; i < tiles; i += gridDim.x) {
            const llmk::GroupedTile tile = walk.find(i);
            if (tile.row + consumer * 64 >= tile.end) {  // this warpgroup has no row: it only releases the stages
                for (int k = 0; k < steps; ++k, ring.next()) {
                    llmk::mbarrier_wait_parity(full + ring.stage, ring.parity);
                    if (thread == 0) llmk::mbarrier_arrive(empty + ring.stage);
                }
                continue;
            }
            for (int k = 0; k < steps; ++k, ring.next()) {
                llmk::mbarrier_wait_parity(full + ring.stage, ring.parity);
                const uint64_t stage = ring.stage * (kStageBytes / 16);
                llmk::wgmma_fence();
#pragma unroll
                for (int part = 0; part < kDepth / 16; ++part) {
                    llmk::wgmma_ss<T>(sums, own_x + stage + 2 * part, gate_and_up + stage + 2 * part,
                                      k > 0 || part > 0);
                }
                llmk::wgmma_commit_group();
                llmk::wgmma_wait_group<1>();  // the previous step's wgmma is complete
                if (k > 0 && thread == 0) llmk::mbarrier_arrive(empty + (ring.stage + kStages - 1) % kStages);
            }
            llmk::wgmma_wait_group<0>();
            if (thread == 0) llmk::mbarrier_arrive(empty + (ring.stage + kStages - 1) % kStages);

            // Store 64 columns at a time, each warp by itself, through swizzled shared memory. TMA stores whole boxes of
            // 16 rows; the end of a group is stored row by row, because the next group's rows follow it.
            const int row = tile.row + consumer * 64 + warp * 16;
#pragma unroll
            for (int piece = 0; piece < kColumns / 64; ++piece) {
                if (lane == 0) llmk::cp_async_bulk_wait_group_read<0>();
                __syncwarp();
#pragma unroll
                for (int c = 0; c < 4; ++c) {  // 16 columns each
                    float s[8];
#pragma unroll
                    for (int j = 0; j < 8; ++j) {
                        const int at = piece * 32 + c * 8 + j;
                        s[j] = swiglu(sums[at], sums[kColumns / 2 + at]);
                    }
                    const unsigned values[4] = {llmk::pack_pair<T>(s[0], s[1]), llmk::pack_pair<T>(s[2], s[3]),
                                                llmk::pack_pair<T>(s[4], s[5]), llmk::pack_pair<T>(s[6], s[7])};
                    const int r = lane % 16, chunk = 2 * c + lane / 16;
                    llmk::stmatrix_x4(values, own_out + r * 128 + ((chunk ^ (r % 8)) * 16));
                }
                llmk::fence_proxy_async();
                __syncwarp();
                const int column = tile.column * kColumns + piece * 64;
                if (row + 16 > tile.end) {
                    llmk::store_swizzled(y + static_cast<long long>(row) * inter + column, own_out, tile.end - row,
                                         inter - column, inter);
                } else if (lane == 0) {
                    llmk::tma_store(&y_map, own_out, column, row, 0);
                    llmk::cp_async_bulk_commit_group();
                }
            }
        }
        if (lane == 0) llmk::cp_async_bulk_wait_group_read<0>();
    }
}

template <typename T>
static void moe_swiglu(const T* x, const T* w, const int* offsets, T* y, int rows, int experts, int in, int inter,
                       cudaStream_t stream) {
    if (rows == 0 || inter == 0) return;
    CUtensorMap x_map, w_map, y_map;
    if (llmk::make_tensor_map(&x_map, x, in, rows, 1, in, 8, kRows) != cudaSuccess) return;
    const long long expert_size = 2LL * inter * in;
    if (llmk::make_tensor_map(&w_map, w, in, 2 * inter, experts, in, expert_size, kColumns) != cudaSuccess) return;
    if (llmk::make_tensor_map(&y_map, y, inter, rows, 1, inter, 8, 16) != cudaSuccess) return;

    int device, sms;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
    // Only the GPU knows the groups. There are at most this many tiles: every group may end with a tile that is not full.
    const long long most =
        (rows / kRows + static_cast<long long>(std::min(experts, rows))) * ((inter + kColumns - 1) / kColumns);
    const int blocks = static_cast<int>(std::min<long long>(sms, most));
    cudaFuncSetAttribute(swiglu_kernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
    swiglu_kernel<T><<<blocks, kThreads, kSharedBytes, stream>>>(x_map, w_map, y_map, offsets, y, experts, in, inter);
}

extern "C" void moe_swiglu_f16(const __half* x, const __half* w, const int* offsets, __half* y, int rows, int experts,
                               int in_features, int intermediate, cudaStream_t stream) {
    moe_swiglu(x, w, offsets, y, rows, experts, in_features, intermediate, stream);
}

extern "C" void moe_swiglu_bf16(const __nv_bfloat16* x, const __nv_bfloat16* w, const int* offsets, __nv_bfloat16* y,
                                int rows, int experts, int in_features, int intermediate, cudaStream_t stream) {
    moe_swiglu(x, w, offsets, y, rows, experts, in_features, intermediate, stream);
}
