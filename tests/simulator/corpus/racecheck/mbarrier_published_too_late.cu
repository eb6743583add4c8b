// One thread initializes the mbarrier, and others use it without a barrier in between.
// n = 64, tile<<<1, 64>>>(x, out, n)
#include "../ptx.cuh"

__global__ void tile(const float* x, float* out, int n) {
    __shared__ float data[64];
    __shared__ unsigned long long ready;
    if (threadIdx.x == 0) ptx::mbarrier_init(&ready, 1);  // expected finding: within_warp within_block
#ifdef CLEAN
    __syncthreads();
#endif
    if (threadIdx.x == 0) {
        for (int i = 0; i < 64; ++i) data[i] = x[i];
        ptx::mbarrier_arrive(&ready);
    }
    ptx::mbarrier_wait_parity(&ready, 0);  // expected finding: within_warp within_block
    out[threadIdx.x] = data[63 - threadIdx.x];
}
