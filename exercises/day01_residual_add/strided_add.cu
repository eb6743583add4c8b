// Strided add: out = x + y, where x and y are views: each has its own strides, in elements.
//
// The kernel has one fault. Find the fault with the help of the report, and correct it.
#include <cuda_runtime.h>

constexpr int kThreads = 256;

// x, y: (rows, cols) views; out: (rows, cols), contiguous. One block per row, because the x dimension of a grid may be
// 2^31 - 1.
__global__ void strided_add_kernel(const float* x, const float* y, float* out, int cols, long long x_row_stride,
                                   long long x_col_stride, long long y_row_stride, long long y_col_stride) {
    const long long row = blockIdx.x;  // 64 bits, because row * stride may exceed 2^31
    for (int col = threadIdx.x; col < cols; col += blockDim.x) {
        const float a = x[row * cols + col];
        const float b = y[row * cols + col];
        out[row * cols + col] = a + b;
    }
}

extern "C" void strided_add(const float* x, const float* y, float* out, int rows, int cols, long long x_row_stride,
                            long long x_col_stride, long long y_row_stride, long long y_col_stride,
                            cudaStream_t stream) {
    if (rows == 0 || cols == 0) return;
    const int threads = cols < kThreads ? (cols + 31) / 32 * 32 : kThreads;
    strided_add_kernel<<<rows, threads, 0, stream>>>(x, y, out, cols, x_row_stride, x_col_stride, y_row_stride,
                                                     y_col_stride);
}
