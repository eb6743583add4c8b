// A correct row sum with a different design: one warp per row. Nothing is shared, so nothing can race.
#include <cuda_runtime.h>

constexpr int kThreads = 128;

// x: (rows, cols); out: (rows).
__global__ void row_sums(const float* x, float* out, int rows, int cols) {
    const long long row = (static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x) / 32;
    if (row >= rows) return;  // all lanes of a warp exit together
    float sum = 0.0f;
    for (int col = threadIdx.x % 32; col < cols; col += 32) sum += x[row * cols + col];
    for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_down_sync(0xffffffffu, sum, distance);
    if (threadIdx.x % 32 == 0) out[row] = sum;
}

extern "C" void row_sum_debug(const float* x, float* out, int rows, int cols, cudaStream_t stream) {
    if (rows == 0) return;
    row_sums<<<(rows + kThreads / 32 - 1) / (kThreads / 32), kThreads, 0, stream>>>(x, out, rows, cols);
}
