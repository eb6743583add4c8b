// Half of the threads reach a barrier that the other half never executes.
// n = 128 elements
#include <cuda_runtime.h>

__global__ void swap(const float* x, float* out, int n) {
    __shared__ float tile[128];
    tile[threadIdx.x] = x[threadIdx.x];
#ifdef CLEAN
    __syncthreads();
    if (threadIdx.x < 64) tile[threadIdx.x] *= 2;
    __syncthreads();
#else
    __syncthreads();
    if (threadIdx.x < 64) {
        tile[threadIdx.x] *= 2;
        __syncthreads();  // expected finding: barrier_after_exit
    }
#endif
    out[threadIdx.x] = tile[threadIdx.x];
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) { swap<<<1, 128, 0, stream>>>(x, out, n); }
