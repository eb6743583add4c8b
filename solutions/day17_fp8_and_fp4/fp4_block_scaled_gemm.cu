// y = alpha x w^T with x and w in NVFP4, on Blackwell's tensor cores: tcgen05.mma multiplies by the scale factors itself.
//
// A block computes 128 x 128 of y. One thread loads tiles of x and w by TMA, kStages ahead. Four warps load the scale
// factors of the same tiles, and place them as tcgen05.cp reads them. One thread copies them to tensor memory and issues
// the mma. At the end the four warps load the accumulators from tensor memory.
//
//   x: [rows, in / 2], two e2m1 per byte     x_scales: [rows, in / 16], e4m3     alpha: [1]
//   w: [out, in / 2]                         w_scales: [out, in / 16]            y: [rows, out]
#include <cuda_runtime.h>

#include "llmk/fp8.cuh"
#include "llmk/mbarrier.cuh"
#include "llmk/tcgen05_block_scale.cuh"
#include "llmk/tma.cuh"

constexpr int kRows = 128, kColumns = 128;
constexpr int kDepth = 256;    // elements in a row of a tile: 128 bytes
constexpr int kMmaDepth = 64;  // elements of k per mma: 32 bytes, with four scales, which are a word
constexpr int kMmas = kDepth / kMmaDepth;
constexpr int kStages = 4;
constexpr int kWorkers = 128;  // threads that load scales and store y
constexpr int kThreads = 64 + kWorkers;

constexpr int kXBytes = kRows * kDepth / 2, kTileBytes = kXBytes + kColumns * kDepth / 2;
constexpr int kScaleBytes = 512;  // scales of 128 rows for one mma
constexpr int kStageBytes = kTileBytes + 2 * kMmas * kScaleBytes;
constexpr int kOutPitch = 33;               // floats from row to row of a staging buffer of y
constexpr int kOutFloats = 32 * kOutPitch;  // floats of each warp's staging buffer
constexpr int kSharedBytes = 1024 + kStages * kStageBytes + kWorkers / 32 * kOutFloats * 4 + (2 * kStages + 1) * 8 + 8;

constexpr unsigned kXScaleColumns = kColumns, kWScaleColumns = kXScaleColumns + 4 * kMmas;  // in tensor memory
constexpr unsigned kTensorColumns = 256;

// Write the scales of kDepth elements of `count` rows to shared memory: word i of row r, for the i-th mma, goes to
// i * 512 + r % 32 * 16 + r / 32 * 4. Scales outside the matrix are zero, since a stale pattern could be NaN.
__device__ __forceinline__ void place_scales(unsigned char* place, const unsigned char* scales, int count, int first,
                                             int rows, int k, int in, int worker) {
    for (int i = worker; i < 128 * kMmas; i += kWorkers) {
        const int row = i / kMmas, mma = i % kMmas;
        unsigned word = 0;
        if (row < count && first + row < rows && k + mma * kMmaDepth < in) {
            word =
                *reinterpret_cast<const unsigned*>(scales + (static_cast<size_t>(first + row) * in + k) / 16 + mma * 4);
        }
        *reinterpret_cast<unsigned*>(place + mma * kScaleBytes + row % 32 * 16 + row / 32 * 4) = word;
    }
}

__global__ void __launch_bounds__(kThreads)
    gemm_kernel(const __grid_constant__ CUtensorMap x_map, const __grid_constant__ CUtensorMap w_map,
                const unsigned char* __restrict__ x_scales, const unsigned char* __restrict__ w_scales,
                const float* __restrict__ alpha, float* __restrict__ y, int rows, int in, int out) {
    extern __shared__ unsigned char shared[];
    unsigned char* stages = shared + (1024 - llmk::shared_address(shared) % 1024) % 1024;
    float* out_tiles = reinterpret_cast<float*>(stages + kStages * kStageBytes);
    uint64_t* full = reinterpret_cast<uint64_t*>(out_tiles + kWorkers / 32 * kOutFloats);  // [kStages]
    uint64_t* empty = full + kStages;   // [kStages] mbarriers: the mma that reads the stage is complete
    uint64_t* ready = empty + kStages;  // an mbarrier: the accumulators are complete
    unsigned* taken = reinterpret_cast<unsigned*>(ready + 1);

    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int row0 = blockIdx.y * kRows, column0 = blockIdx.x * kColumns;
    if (threadIdx.x == 0) {
        for (int s = 0; s < kStages; ++s) {
            llmk::mbarrier_init(full + s, 1 + kWorkers);  // the thread that starts TMA, and those that write scales
            llmk::mbarrier_init(empty + s, 1);
        }
        llmk::mbarrier_init(ready, 1);
        llmk::fence_mbarrier_init();
    }
    if (warp == 1) llmk::tcgen05_alloc<1>(taken, kTensorColumns);
    __syncthreads();
    const unsigned accumulators = *taken;

    llmk::Ring<kStages> ring;
    if (warp == 0) {
        if (lane == 0) {
            for (int k = 0; k < in; k += kDepth, ring.next()) {
                unsigned char* stage = stages + ring.stage * kStageBytes;
                llmk::mbarrier_wait_parity(empty + ring.stage, ring.parity ^ 1);
                llmk::mbarrier_arrive_expect_tx(full + ring.stage, kTileBytes);
                llmk::tma_load(stage, &x_map, full + ring.stage, k / 2, row0, 0);
                llmk::tma_load(stage + kXBytes, &w_map, full + ring.stage, k / 2, column0, 0);
            }
        }
    } else if (warp == 1) {
        if (lane == 0) {
            constexpr unsigned kind = llmk::make_instr_desc_mxf4nvf4(kRows, kColumns);
            for (int k = 0; k < in; k += kDepth, ring.next()) {
                llmk::mbarrier_wait_parity(full + ring.stage, ring.parity);
                const unsigned char* stage = stages + ring.stage * kStageBytes;
                const unsigned char* scales = stage + kTileBytes;
                const uint64_t a = llmk::make_tcgen05_smem_desc(stage),
                               b = llmk::make_tcgen05_smem_desc(stage + kXBytes);
#pragma unroll
                for (int part = 0; part < kMmas; ++part) {
                    const unsigned a_scales = accumulators + kXScaleColumns + 4 * part,
                                   b_scales = accumulators + kWScaleColumns + 4 * part;
                    llmk::tcgen05_cp_32x128b_warpx4(a_scales, llmk::make_scale_smem_desc(scales + part * kScaleBytes));
                    llmk::tcgen05_cp_32x128b_warpx4(b_scales,
                                                    llmk::make_scale_smem_desc(scales + (kMmas + part) * kScaleBytes));
                    llmk::tcgen05_mma_mxf4nvf4(accumulators, a + 2 * part, b + 2 * part, kind, a_scales, b_scales,
                                               k > 0 || part > 0);
                }
                llmk::tcgen05_commit<1>(empty + ring.stage);
            }
            llmk::tcgen05_commit<1>(ready);
        }
    } else {
        const int worker = threadIdx.x - 64;
        for (int k = 0; k < in; k += kDepth, ring.next()) {
            unsigned char* scales = stages + ring.stage * kStageBytes + kTileBytes;
            llmk::mbarrier_wait_parity(empty + ring.stage, ring.parity ^ 1);
            place_scales(scales, x_scales, kRows, row0, rows, k, in, worker);
            place_scales(scales + kMmas * kScaleBytes, w_scales, kColumns, column0, out, k, in, worker);
            llmk::fence_proxy_async();
            llmk::mbarrier_arrive(full + ring.stage);
        }

        llmk::mbarrier_wait_parity(ready, 0);
        llmk::tcgen05_fence_after_thread_sync();
        float* own = out_tiles + worker / 32 * kOutFloats;
        const float factor = *alpha;
        const int first_row = row0 + warp % 4 * 32;
        for (int piece = 0; piece < kColumns; piece += 32) {
            float sums[32];
            llmk::tcgen05_ld(sums, accumulators + llmk::tmem_lane_offset() + piece);
            llmk::tcgen05_wait_ld();
#pragma unroll
            for (int c = 0; c < 32; ++c) own[lane * kOutPitch + c] = factor * sums[c];
            __syncwarp();
            const int column = column0 + piece + lane;
            for (int r = 0; r < 32 && first_row + r < rows; ++r) {
                if (column < out) y[static_cast<size_t>(first_row + r) * out + column] = own[r * kOutPitch + lane];
            }
            __syncwarp();
        }
    }
    __syncthreads();
    if (warp == 1) llmk::tcgen05_dealloc<1>(accumulators, kTensorColumns);
}

extern "C" void fp4_block_scaled_gemm(const unsigned char* x, const unsigned char* w, const unsigned char* x_scales,
                                      const unsigned char* w_scales, const float* alpha, float* y, int rows,
                                      int in_features, int out_features, cudaStream_t stream) {
    if (rows == 0 || out_features == 0) return;
    CUtensorMap x_map, w_map;
    if (llmk::make_tensor_map_u8(&x_map, x, in_features / 2, rows, kRows) != cudaSuccess) return;
    if (llmk::make_tensor_map_u8(&w_map, w, in_features / 2, out_features, kColumns) != cudaSuccess) return;

    const dim3 grid((out_features + kColumns - 1) / kColumns, (rows + kRows - 1) / kRows);
    cudaFuncSetAttribute(gemm_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
    gemm_kernel<<<grid, kThreads, kSharedBytes, stream>>>(x_map, w_map, x_scales, w_scales, alpha, y, rows, in_features,
                                                          out_features);
}
