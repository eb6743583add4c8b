// Version 2 of add.cu without its guard: right whenever n is a multiple of the block size, and only then.
#include <cuda_runtime.h>

// x, residual, out: (n).
__global__ void add_kernel(const float* x, const float* residual, float* out) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = x[i] + residual[i];
}

extern "C" void add(const float* x, const float* residual, float* out, int n, cudaStream_t stream) {
    add_kernel<<<(n + 255) / 256, 256, 0, stream>>>(x, residual, out);
}
