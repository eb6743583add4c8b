// Accumulators are scaled between two wgmma, but wgmma.fence is executed before the scaling instead of after it.
// n = 512, product<<<1, 128>>>(x, out, n)
#include "../ptx.cuh"

__global__ void product(const float* x, float* out, int n) {
    __shared__ __align__(128) unsigned a[512], b[64];
    ptx::fill_operands(a, b, x);
    float d[4] = {};
    for (int turn = 0; turn < 2; ++turn) {
#ifndef CLEAN
        ptx::wgmma_fence();
#endif
        d[0] *= 2, d[1] *= 2, d[2] *= 2, d[3] *= 2;  // expected finding: missing_wgmma_fence
#ifdef CLEAN
        ptx::wgmma_fence();
#endif
        ptx::wgmma(d, a, b);  // expected finding: missing_wgmma_fence
        ptx::wgmma_commit_group();
        ptx::wgmma_wait_group();
    }
    for (int i = 0; i < 4; ++i) out[4 * threadIdx.x + i] = d[i];
}
