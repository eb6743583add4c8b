// The kernel calls __trap().
#include <cuda_runtime.h>

__global__ void copy(const float* x, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
#ifndef CLEAN
    if (i == 5) __trap();  // expected finding: trap
#endif
    out[i] = x[i];
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) { copy<<<(n + 127) / 128, 128, 0, stream>>>(x, out, n); }
