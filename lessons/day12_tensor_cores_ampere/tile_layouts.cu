// The same tile in shared memory in three layouts: row-major, padded, swizzled. ldmatrix reads the whole tile; the sums
// are the same, the wavefronts are not.
//
//   x: [64, 64]     sums: [32], one for each lane
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "llmk/mma.cuh"
#include "llmk/swizzle.cuh"

constexpr int kRows = 64, kColumns = 64;

struct Plain {
    static constexpr int kElements = kRows * kColumns;
    static __device__ int offset(int row, int column) { return row * kColumns + column; }
};

struct Padded {
    static constexpr int kPitch = kColumns + 8;  // 16 bytes more than a row needs
    static constexpr int kElements = kRows * kPitch;
    static __device__ int offset(int row, int column) { return row * kPitch + column; }
};

struct Swizzled {
    static constexpr int kElements = kRows * kColumns;
    static __device__ int offset(int row, int column) { return llmk::Swizzle<kColumns>::offset(row, column); }
};

template <typename Layout>
__global__ void read_tile(const __half* x, float* sums) {
    __shared__ __align__(128) __half tile[Layout::kElements];
    const int lane = threadIdx.x;
    for (int i = lane; i < kRows * kColumns / 8; i += 32) {
        const int row = i / (kColumns / 8), column = i % (kColumns / 8) * 8;
        *reinterpret_cast<uint4*>(tile + Layout::offset(row, column)) =
            *reinterpret_cast<const uint4*>(x + row * kColumns + column);
    }
    __syncwarp();
    float sum = 0;
    for (int row = 0; row < kRows; row += 16) {
        for (int column = 0; column < kColumns; column += 16) {
            unsigned registers[4];
            llmk::ldmatrix_x4(registers, tile + Layout::offset(row + lane % 16, column + lane / 16 * 8));
            for (int e = 0; e < 4; ++e) {
                const __half2 two = *reinterpret_cast<const __half2*>(&registers[e]);
                sum += __low2float(two) + __high2float(two);
            }
        }
    }
    sums[lane] = sum;
}

// layout: 0 plain, 1 padded, 2 swizzled
extern "C" void sum_tile(const __half* x, float* sums, int layout, cudaStream_t stream) {
    const auto kernel = layout == 0 ? read_tile<Plain> : layout == 1 ? read_tile<Padded> : read_tile<Swizzled>;
    kernel<<<1, 32, 0, stream>>>(x, sums);
}
