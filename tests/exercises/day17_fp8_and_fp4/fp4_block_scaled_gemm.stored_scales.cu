// One warpgroup and one stage. Ordinary loads fill the tiles, without a swizzle. The scales go to tensor memory by
// tcgen05.st: each warp stores a copy in its own lanes.
#include <cuda_runtime.h>

#include "llmk/mbarrier.cuh"
#include "llmk/tcgen05_block_scale.cuh"

constexpr int kRows = 128, kColumns = 192, kDepth = 128, kThreads = 128, kMmas = kDepth / 64;
constexpr int kRowBytes = kDepth / 2;
// A tile consists of core matrices of 8 rows x 16 bytes. Those with the same 16 bytes of k are contiguous in memory.
constexpr int kTileBytes = (kRows + kColumns) * kRowBytes, kScaleRows = kRows + kColumns;

__device__ __forceinline__ void load(unsigned char* tile, unsigned* words, const unsigned char* q,
                                     const unsigned char* scales, int count, int first, int rows, int k, int in) {
    for (int i = threadIdx.x; i < count * kRowBytes / 16; i += kThreads) {
        const int row = i / (kRowBytes / 16), piece = i % (kRowBytes / 16);
        uint4 loaded = make_uint4(0, 0, 0, 0);
        if (first + row < rows && k + piece * 32 < in) {
            loaded = *reinterpret_cast<const uint4*>(q + (static_cast<size_t>(first + row) * in + k) / 2 + piece * 16);
        }
        *reinterpret_cast<uint4*>(tile + piece * count * 16 + row * 16) = loaded;
    }
    for (int i = threadIdx.x; i < count * kMmas; i += kThreads) {
        const int row = i / kMmas, from = k + i % kMmas * 64;
        unsigned word = 0;
        if (first + row < rows && from < in) {
            word = *reinterpret_cast<const unsigned*>(scales + (static_cast<size_t>(first + row) * in + from) / 16);
        }
        words[i % kMmas * kScaleRows + row] = word;
    }
}

__device__ __forceinline__ uint64_t describe(const unsigned char* tile, int rows) {
    const uint64_t address = (llmk::shared_address(tile) & 0x3ffff) >> 4;
    return address | static_cast<uint64_t>(rows) << 16 | static_cast<uint64_t>(128 >> 4) << 32 | 1ull << 46;
}

__global__ void __launch_bounds__(kThreads)
    gemm(const unsigned char* x, const unsigned char* w, const unsigned char* x_scales, const unsigned char* w_scales,
         const float* alpha, float* y, int rows, int in, int out) {
    __shared__ __align__(128) unsigned char tiles[kTileBytes];
    __shared__ unsigned words[kMmas * kScaleRows];
    __shared__ float out_tiles[kThreads / 32][32 * 33];
    __shared__ uint64_t complete;
    __shared__ unsigned taken;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int row0 = blockIdx.y * kRows, column0 = blockIdx.x * kColumns;
    if (warp == 0) llmk::tcgen05_alloc<1>(&taken, 256);
    if (threadIdx.x == 0) {
        llmk::mbarrier_init(&complete, 1);
        llmk::fence_mbarrier_init();
    }
    __syncthreads();
    const unsigned d = taken, of_scales = d + kColumns;

    unsigned parity = 0;
    for (int k = 0; k < in; k += kDepth, parity ^= 1) {
        load(tiles, words, x, x_scales, kRows, row0, rows, k, in);
        load(tiles + kRows * kRowBytes, words + kRows, w, w_scales, kColumns, column0, out, k, in);
        llmk::fence_proxy_async();
        __syncthreads();
        for (int i = 0; i < kMmas * kScaleRows / 32; ++i) {
            asm volatile(
                "tcgen05.st.sync.aligned.32x32b.x1.b32 [%0], {%1};" ::"r"(of_scales + llmk::tmem_lane_offset() + i),
                "r"(words[i * 32 + lane])
                : "memory");
        }
        asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
        llmk::tcgen05_fence_before_thread_sync();
        __syncthreads();
        llmk::tcgen05_fence_after_thread_sync();
        if (threadIdx.x == 0) {
            for (int part = 0; part < kMmas; ++part) {
                const unsigned scales = of_scales + part * kScaleRows / 32;
                llmk::tcgen05_mma_mxf4nvf4(d, describe(tiles + 2 * part * kRows * 16, kRows),
                                           describe(tiles + kRows * kRowBytes + 2 * part * kColumns * 16, kColumns),
                                           llmk::make_instr_desc_mxf4nvf4(kRows, kColumns), scales, scales + kRows / 32,
                                           k > 0 || part > 0);
            }
            llmk::tcgen05_commit<1>(&complete);
        }
        __syncwarp();
        llmk::mbarrier_wait_parity(&complete, parity);
        llmk::tcgen05_fence_after_thread_sync();
    }

    const float factor = *alpha;
    for (int piece = 0; piece < kColumns; piece += 32) {
        float sums[32];
        llmk::tcgen05_ld(sums, d + llmk::tmem_lane_offset() + piece);
        llmk::tcgen05_wait_ld();
        for (int c = 0; c < 32; ++c) out_tiles[warp][lane * 33 + c] = factor * sums[c];
        __syncwarp();
        for (int r = 0; r < 32; ++r) {
            const int row = row0 + warp * 32 + r, column = column0 + piece + lane;
            if (row < rows && column < out) y[static_cast<size_t>(row) * out + column] = out_tiles[warp][r * 33 + lane];
        }
        __syncwarp();
    }
    __syncthreads();
    if (warp == 0) llmk::tcgen05_dealloc<1>(d, 256);
}

extern "C" void fp4_block_scaled_gemm(const unsigned char* x, const unsigned char* w, const unsigned char* x_scales,
                                      const unsigned char* w_scales, const float* alpha, float* y, int rows,
                                      int in_features, int out_features, cudaStream_t stream) {
    if (rows == 0 || out_features == 0) return;
    const dim3 grid((out_features + kColumns - 1) / kColumns, (rows + kRows - 1) / kRows);
    gemm<<<grid, kThreads, 0, stream>>>(x, w, x_scales, w_scales, alpha, y, rows, in_features, out_features);
}
