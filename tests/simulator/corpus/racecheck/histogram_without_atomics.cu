// Many threads add to one counter with +=.
#include <cuda_runtime.h>

__global__ void histogram(const float* x, float* out, int n) {
    __shared__ int bins[16];
    if (threadIdx.x < 16) bins[threadIdx.x] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
#ifdef CLEAN
        atomicAdd(&bins[i / 3 % 16], 1);
#else
        bins[i / 3 % 16] += 1;  // expected finding: within_block within_warp
#endif
    }
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = bins[i % 16];
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) { histogram<<<1, 128, 0, stream>>>(x, out, n); }
