// atomicAdd reads uninitialized shared memory. It is uninitialized in each block, even if an earlier block wrote it.
#include <cuda_runtime.h>

__global__ void take(const float* x, float* out, int n) {
    __shared__ float slots[128];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
#ifdef CLEAN
    atomicExch(&slots[threadIdx.x], x[i]);
#else
    atomicAdd(&slots[threadIdx.x], x[i]);  // expected finding: uninitialized_read
#endif
    out[i] = slots[threadIdx.x];
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) { take<<<(n + 127) / 128, 128, 0, stream>>>(x, out, n); }
