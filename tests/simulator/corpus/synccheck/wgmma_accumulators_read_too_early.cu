// Accumulators are read before a wait for wgmma.
// n = 512, product<<<1, 128>>>(x, out, n)
#include "../ptx.cuh"

__global__ void product(const float* x, float* out, int n) {
    __shared__ __align__(128) unsigned a[512], b[64];
    ptx::fill_operands(a, b, x);
    float d[4] = {};
    ptx::wgmma_fence();
    ptx::wgmma(d, a, b);  // expected finding: accumulator_not_awaited
    ptx::wgmma_commit_group();
#ifdef CLEAN
    ptx::wgmma_wait_group();
#endif
    for (int i = 0; i < 4; ++i) out[4 * threadIdx.x + i] = d[i];  // expected finding: accumulator_not_awaited
#ifndef CLEAN
    ptx::wgmma_wait_group();
#endif
}
