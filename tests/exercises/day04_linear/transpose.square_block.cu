// Correct alternative: one thread per element, 32 x 32 threads per block; the store into shared memory transposes the
// tile
#include <cuda_runtime.h>

// in: [rows, cols]   out: [cols, rows]
__global__ void transpose_kernel(const float* in, float* out, long long rows, long long cols) {
    extern __shared__ float tile[];  // [32 columns of in][33]
    const long long row = blockIdx.y * 32LL + threadIdx.y, col = blockIdx.x * 32LL + threadIdx.x;
    if (row < rows && col < cols) tile[threadIdx.x * 33 + threadIdx.y] = in[row * cols + col];
    __syncthreads();
    const long long out_row = blockIdx.x * 32LL + threadIdx.y, out_col = blockIdx.y * 32LL + threadIdx.x;
    if (out_row < cols && out_col < rows) out[out_row * rows + out_col] = tile[threadIdx.y * 33 + threadIdx.x];
}

extern "C" void transpose(const float* in, float* out, int rows, int cols, cudaStream_t stream) {
    if (rows == 0 || cols == 0) return;
    const dim3 grid((cols + 31) / 32, (rows + 31) / 32);
    transpose_kernel<<<grid, dim3(32, 32), 32 * 33 * sizeof(float), stream>>>(in, out, rows, cols);
}
