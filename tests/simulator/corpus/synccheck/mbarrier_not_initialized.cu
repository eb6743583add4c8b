// The mbarrier is never initialized.
// n = 64, tile<<<1, 64>>>(x, out, n)
#include "../ptx.cuh"

__global__ void tile(const float* x, float* out, int n) {
    __shared__ float data[64];
    __shared__ unsigned long long all;
#ifdef CLEAN
    if (threadIdx.x == 0) ptx::mbarrier_init(&all, 64);
    __syncthreads();
#endif
    data[threadIdx.x] = x[threadIdx.x];
    ptx::mbarrier_arrive(&all);  // expected finding: mbarrier_not_initialized
    ptx::mbarrier_wait_parity(&all, 0);
    out[threadIdx.x] = data[63 - threadIdx.x];
}
