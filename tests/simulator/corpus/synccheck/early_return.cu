// Threads past the end exit before a barrier at which the other threads wait.
#include <cuda_runtime.h>

__global__ void rotate(const float* x, float* out, int n) {
    __shared__ float tile[128];
    const int i = blockIdx.x * 128 + threadIdx.x;
#ifndef CLEAN
    if (i >= n) return;
#endif
    tile[threadIdx.x] = i < n ? x[i] : 0.0f;
    __syncthreads();  // expected finding: barrier_after_exit
    if (i < n) out[i] = tile[threadIdx.x ^ 1];
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) { rotate<<<(n + 127) / 128, 128, 0, stream>>>(x, out, n); }
