// wgmma.wait_group does not wait for a wgmma that was not committed to a group.
// n = 512, product<<<1, 128>>>(x, out, n)
#include "../ptx.cuh"

__global__ void product(const float* x, float* out, int n) {
    __shared__ __align__(128) unsigned a[512], b[64];
    ptx::fill_operands(a, b, x);
    float d[4] = {};
    ptx::wgmma_fence();
    ptx::wgmma(d, a, b);  // expected finding: accumulator_not_awaited
#ifdef CLEAN
    ptx::wgmma_commit_group();
#endif
    ptx::wgmma_wait_group();
    for (int i = 0; i < 4; ++i) out[4 * threadIdx.x + i] = d[i];  // expected finding: accumulator_not_awaited
    ptx::wgmma_commit_group();
    ptx::wgmma_wait_group();
}
