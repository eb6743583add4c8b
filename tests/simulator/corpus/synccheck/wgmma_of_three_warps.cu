// One warp of a warpgroup takes another branch and does not execute wgmma.
// n = 512, product<<<1, 128>>>(x, out, n)
#include "../ptx.cuh"

__global__ void product(const float* x, float* out, int n) {
    __shared__ __align__(128) unsigned a[512], b[64];
    ptx::fill_operands(a, b, x);
    float d[4] = {};
#ifndef CLEAN
    if (threadIdx.x < 96) {
#endif
        ptx::wgmma_fence();
        ptx::wgmma(d, a, b);  // expected finding: deadlock
        ptx::wgmma_commit_group();
        ptx::wgmma_wait_group();
#ifndef CLEAN
    }
    __syncthreads();  // expected finding: deadlock
#endif
    for (int i = 0; i < 4; ++i) out[4 * threadIdx.x + i] = d[i];
}
