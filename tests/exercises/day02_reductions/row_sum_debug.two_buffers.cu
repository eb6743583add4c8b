// A correct row sum with a different design: rows alternate between two arrays for the warps' sums, so that one barrier
// per row is enough. Warp 0 reads the sums of row r before it arrives at the barrier of row r + 1. The other warps
// write to the same array for row r + 2, after that barrier.
#include <cuda_runtime.h>

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr int kRowsPerBlock = 4;

__device__ float warp_sum(float mine) {
    for (int distance = 16; distance > 0; distance /= 2) mine += __shfl_xor_sync(0xffffffffu, mine, distance);
    return mine;
}

// x: (rows, cols); out: (rows).
__global__ void row_sums(const float* x, float* out, int rows, int cols) {
    __shared__ float partial[2][kWarps];
    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
    for (int turn = 0; turn < kRowsPerBlock; ++turn) {
        const long long row = static_cast<long long>(blockIdx.x) * kRowsPerBlock + turn;
        if (row >= rows) break;
        float sum = 0.0f;
        for (int col = threadIdx.x; col < cols; col += kThreads) sum += x[row * cols + col];
        sum = warp_sum(sum);
        if (lane == 0) partial[turn % 2][warp] = sum;
        __syncthreads();
        if (warp == 0) {
            sum = warp_sum(lane < kWarps ? partial[turn % 2][lane] : 0.0f);
            if (lane == 0) out[row] = sum;
        }
    }
}

extern "C" void row_sum_debug(const float* x, float* out, int rows, int cols, cudaStream_t stream) {
    if (rows == 0) return;
    row_sums<<<(rows + kRowsPerBlock - 1) / kRowsPerBlock, kThreads, 0, stream>>>(x, out, rows, cols);
}
