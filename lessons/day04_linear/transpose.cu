// Transpose, version by version: out[c, r] = in[r, c].
//
// Version 1: each thread moves one element. On one side, neighboring threads are a whole row apart.
// Version 2: through a tile in shared memory: both sides move along rows. Each column of the tile is in one bank.
// Version 3: one column of padding spreads each column over all banks.
#include <cuda_runtime.h>

// ---------------------------------------------------------------------------------------------------------------------
// The kernels. in is (rows, cols), out is (cols, rows); blocks are 32 x 32.

__global__ void transpose_kernel1(const float* in, float* out, int rows, int cols) {
    const int row = blockIdx.y * 32 + threadIdx.y, col = blockIdx.x * 32 + threadIdx.x;
    if (row < rows && col < cols) out[col * rows + row] = in[row * cols + col];
}

// The tile is written along its rows and read along its columns. WIDTH is the length of a row in shared memory.
template <int WIDTH>
__global__ void transpose_kernel2(const float* in, float* out, int rows, int cols) {
    __shared__ float tile[32][WIDTH];
    const int row = blockIdx.y * 32 + threadIdx.y, col = blockIdx.x * 32 + threadIdx.x;
    if (row < rows && col < cols) tile[threadIdx.y][threadIdx.x] = in[row * cols + col];
    __syncthreads();
    const int out_row = blockIdx.x * 32 + threadIdx.y, out_col = blockIdx.y * 32 + threadIdx.x;
    if (out_row < cols && out_col < rows) out[out_row * rows + out_col] = tile[threadIdx.x][threadIdx.y];
}

// ---------------------------------------------------------------------------------------------------------------------
// The launchers.

dim3 blocks_for(int rows, int cols) { return dim3((cols + 31) / 32, (rows + 31) / 32); }

extern "C" void transpose_1(const float* in, float* out, int rows, int cols, cudaStream_t stream) {
    transpose_kernel1<<<blocks_for(rows, cols), dim3(32, 32), 0, stream>>>(in, out, rows, cols);
}

extern "C" void transpose_2(const float* in, float* out, int rows, int cols, cudaStream_t stream) {
    transpose_kernel2<32><<<blocks_for(rows, cols), dim3(32, 32), 0, stream>>>(in, out, rows, cols);
}

extern "C" void transpose_3(const float* in, float* out, int rows, int cols, cudaStream_t stream) {
    transpose_kernel2<33><<<blocks_for(rows, cols), dim3(32, 32), 0, stream>>>(in, out, rows, cols);
}
