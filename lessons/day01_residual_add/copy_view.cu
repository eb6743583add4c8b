// Copies a view into a contiguous tensor: out[row, col] = x[row * row_stride + col * col_stride].
//
// The two kernels differ in one thing: neighboring threads take neighboring columns, or neighboring rows.
#include <cuda_runtime.h>

// x: a view of (rows, cols); out: (rows, cols), contiguous. Neighboring threads take neighboring columns.
__global__ void along_columns(const float* x, float* out, int rows, int cols, long long row_stride,
                              long long col_stride) {
    const int col = blockIdx.x * blockDim.x + threadIdx.x;
    const long long row = blockIdx.y;
    if (col < cols) out[row * cols + col] = x[row * row_stride + col * col_stride];
}

// Neighboring threads take neighboring rows.
__global__ void along_rows(const float* x, float* out, int rows, int cols, long long row_stride, long long col_stride) {
    const long long row = blockIdx.x * blockDim.x + threadIdx.x;
    const int col = blockIdx.y;
    if (row < rows) out[row * cols + col] = x[row * row_stride + col * col_stride];
}

extern "C" void copy_along_columns(const float* x, float* out, int rows, int cols, long long row_stride,
                                   long long col_stride, cudaStream_t stream) {
    const dim3 grid((cols + 127) / 128, rows);
    along_columns<<<grid, 128, 0, stream>>>(x, out, rows, cols, row_stride, col_stride);
}

extern "C" void copy_along_rows(const float* x, float* out, int rows, int cols, long long row_stride,
                                long long col_stride, cudaStream_t stream) {
    const dim3 grid((rows + 127) / 128, cols);
    along_rows<<<grid, 128, 0, stream>>>(x, out, rows, cols, row_stride, col_stride);
}
