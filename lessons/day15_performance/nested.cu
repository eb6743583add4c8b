// A kernel that launches kernels, because only the device knows how many blocks they need. nvcc needs -rdc=true
// -lcudadevrt.
//
//   starts: [rows + 1]     x, out: [starts[rows]]
#include <cuda_runtime.h>

__global__ void square_row(const float* x, float* out, int begin, int end) {
    const int i = begin + blockIdx.x * blockDim.x + threadIdx.x;
    if (i < end) out[i] = x[i] * x[i];
}

// One thread per row launches as many blocks as its row needs; rows may have very different lengths.
__global__ void square_rows(const float* x, const int* starts, float* out, int rows) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows || starts[row] == starts[row + 1]) return;
    const int length = starts[row + 1] - starts[row];
    square_row<<<(length + 63) / 64, 64>>>(x, out, starts[row], starts[row + 1]);
}

extern "C" void square_ragged(const float* x, const int* starts, float* out, int rows, cudaStream_t stream) {
    square_rows<<<(rows + 31) / 32, 32, 0, stream>>>(x, starts, out, rows);
}
