// Thread 0 stores a total, which other threads read without a barrier.
#include <cuda_runtime.h>

__global__ void scale(const float* x, float* out, int n) {
    __shared__ float total;
    if (threadIdx.x == 0) {
        float sum = 0;
        for (int i = 0; i < n; ++i) sum += x[i];
        total = sum;  // expected finding: within_block within_warp
    }
#ifdef CLEAN
    __syncthreads();
#endif
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = x[i] / total;  // expected finding: within_block within_warp
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) { scale<<<1, 128, 0, stream>>>(x, out, n); }
