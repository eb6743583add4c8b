// y = x w^T by tcgen05 without warp specialization: a block computes a 128 x 128 tile of y. Thread 0 starts the copies
// of the next tiles of x and w while the current ones are multiplied. tcgen05.ld loads the accumulators in the layout
// of mma.sync (16x256b): four lanes hold 32 bytes of a row.
//
//   x: [rows, in]     w: [out, in]     y: [rows, out]     in and out are multiples of 8, and in is not 0
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "llmk/mbarrier.cuh"
#include "llmk/mma.cuh"
#include "llmk/tcgen05.cuh"
#include "llmk/tma.cuh"

constexpr int kSize = 128, kDepth = 64;
constexpr int kStageBytes = 2 * 2 * kSize * kDepth;
constexpr int kSharedBytes = 1024 + 2 * kStageBytes;

// Loads 16 x 16 accumulators into a warp. Lane i gets rows i / 4 and i / 4 + 8, and of each row the columns c, c + 1,
// c + 8 and c + 9, where c = i % 4 * 2.
__device__ __forceinline__ void load_fragment(float (&s)[8], unsigned address) {
    asm volatile("tcgen05.ld.sync.aligned.16x256b.x2.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
                 : "=f"(s[0]), "=f"(s[1]), "=f"(s[2]), "=f"(s[3]), "=f"(s[4]), "=f"(s[5]), "=f"(s[6]), "=f"(s[7])
                 : "r"(address));
}

template <typename T>
__global__ void __launch_bounds__(128)
    linear_kernel(const __grid_constant__ CUtensorMap x_map, const __grid_constant__ CUtensorMap w_map, T* y, int rows,
                  int in, int out) {
    extern __shared__ unsigned char shared[];
    unsigned char* tiles = shared + (1024 - llmk::shared_address(shared) % 1024) % 1024;
    __shared__ uint64_t full[2], used[2];
    __shared__ unsigned taken;
    const int row0 = blockIdx.y * kSize, column0 = blockIdx.x * kSize, steps = (in + kDepth - 1) / kDepth;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    auto copy = [&](int k) {
        unsigned char* x_tile = tiles + k % 2 * kStageBytes;
        llmk::mbarrier_arrive_expect_tx(full + k % 2, kStageBytes);
        llmk::tma_load(x_tile, &x_map, full + k % 2, k * kDepth, row0, 0);
        llmk::tma_load(x_tile + kStageBytes / 2, &w_map, full + k % 2, k * kDepth, column0, 0);
    };
    if (threadIdx.x == 0) {
        for (int s = 0; s < 2; ++s) {
            llmk::mbarrier_init(full + s, 1);
            llmk::mbarrier_init(used + s, 1);
        }
        llmk::fence_mbarrier_init();
        copy(0);
    }
    if (warp == 0) llmk::tcgen05_alloc<1>(&taken, kSize);
    __syncthreads();
    const unsigned accumulators = taken;
    if (threadIdx.x == 0) {
        for (int k = 0; k < steps; ++k) {
            llmk::mbarrier_wait_parity(full + k % 2, k / 2 % 2);
            const uint64_t a = llmk::make_tcgen05_smem_desc(tiles + k % 2 * kStageBytes), b = a + kStageBytes / 2 / 16;
            for (int part = 0; part < kDepth / 16; ++part) {
                llmk::tcgen05_mma<1>(accumulators, a + 2 * part, b + 2 * part, llmk::make_instr_desc<T>(kSize, kSize),
                                     k > 0 || part > 0);
            }
            llmk::tcgen05_commit<1>(used + k % 2);
            if (k + 1 == steps) continue;
            if (k > 0) llmk::mbarrier_wait_parity(used + (k + 1) % 2, (k - 1) / 2 % 2);
            copy(k + 1);
        }
        llmk::mbarrier_wait_parity(used + (steps - 1) % 2, (steps - 1) / 2 % 2);
    }
    __syncthreads();
    llmk::tcgen05_fence_after_thread_sync();
    for (int half = 0; half < 2; ++half) {
        const int row = row0 + warp * 32 + half * 16 + lane / 4;
        for (int first = 0; first < kSize && column0 + first < out; first += 16) {
            float s[8];
            load_fragment(s, accumulators + (static_cast<unsigned>(warp * 32 + half * 16) << 16) + first);
            llmk::tcgen05_wait_ld();
            for (int g = 0; g < 2; ++g) {
                const int column = column0 + first + 8 * g + lane % 4 * 2;
                for (int h = 0; h < 2; ++h) {
                    if (row + 8 * h >= rows || column >= out) continue;
                    *reinterpret_cast<unsigned*>(y + static_cast<long long>(row + 8 * h) * out + column) =
                        llmk::pack_pair<T>(s[4 * g + 2 * h], s[4 * g + 2 * h + 1]);
                }
            }
        }
    }
    __syncthreads();
    if (warp == 0) llmk::tcgen05_dealloc<1>(accumulators, kSize);
}

template <typename T>
static void linear(const T* x, const T* w, T* y, int rows, int in, int out, cudaStream_t stream) {
    if (rows == 0 || out == 0) return;
    CUtensorMap x_map, w_map;
    if (llmk::make_tensor_map(&x_map, x, in, rows, 1, in, 8, kSize) != cudaSuccess) return;
    if (llmk::make_tensor_map(&w_map, w, in, out, 1, in, 8, kSize) != cudaSuccess) return;
    cudaFuncSetAttribute(linear_kernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
    const dim3 grid((out + kSize - 1) / kSize, (rows + kSize - 1) / kSize);
    linear_kernel<T><<<grid, 128, kSharedBytes, stream>>>(x_map, w_map, y, rows, in, out);
}
