// Producers arrive at an mbarrier before they write the data that waiting threads read.
// n = 64, tile<<<1, 64>>>(x, out, n)
#include "../ptx.cuh"

__global__ void tile(const float* x, float* out, int n) {
    __shared__ float data[64];
    __shared__ unsigned long long all;
    if (threadIdx.x == 0) ptx::mbarrier_init(&all, 64);
    __syncthreads();
#ifdef CLEAN
    data[threadIdx.x] = x[threadIdx.x];
    ptx::mbarrier_arrive(&all);
#else
    ptx::mbarrier_arrive(&all);
    data[threadIdx.x] = x[threadIdx.x];  // expected finding: within_block
#endif
    ptx::mbarrier_wait_parity(&all, 0);
    out[threadIdx.x] = data[63 - threadIdx.x];  // expected finding: within_block
}
