// mbarrier.init expects all threads of the block, but only those with i < n arrive.
// n = 100, tile<<<1, 128>>>(x, out, n)
#include "../ptx.cuh"

__global__ void tile(const float* x, float* out, int n) {
    __shared__ float data[128];
    __shared__ unsigned long long all;
    if (threadIdx.x == 0) ptx::mbarrier_init(&all, 128);
    __syncthreads();
    if (threadIdx.x < n) data[threadIdx.x] = x[threadIdx.x];
#ifndef CLEAN
    if (threadIdx.x < n)
#endif
        ptx::mbarrier_arrive(&all);
    ptx::mbarrier_wait_parity(&all, 0);  // expected finding: deadlock
    for (int i = 127 - threadIdx.x; i < n; i += 128) out[i] = data[n - 1 - i];
}
