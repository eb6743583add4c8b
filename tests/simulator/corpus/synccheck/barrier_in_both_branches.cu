// Each branch has its own barrier, so threads of a block wait at different ones.
// n = 128 elements
#include <cuda_runtime.h>

__global__ void branch(const float* x, float* out, int n) {
    __shared__ float tile[128];
#ifdef CLEAN
    tile[threadIdx.x] = threadIdx.x % 2 ? x[threadIdx.x] : 2 * x[threadIdx.x];
    __syncthreads();
#else
    if (threadIdx.x % 2) {
        tile[threadIdx.x] = x[threadIdx.x];
        __syncthreads();  // expected finding: barrier_sites_differ
    } else {
        tile[threadIdx.x] = 2 * x[threadIdx.x];
        __syncthreads();  // expected finding: barrier_sites_differ
    }
#endif
    out[threadIdx.x] = tile[127 - threadIdx.x];
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) { branch<<<1, 128, 0, stream>>>(x, out, n); }
