// The wait allows the younger of two groups to be pending, but then the accumulators of the younger group are used.
// n = 512, product<<<1, 128>>>(x, out, n)
#include "../ptx.cuh"

__global__ void product(const float* x, float* out, int n) {
    __shared__ __align__(128) unsigned a[512], b[64];
    ptx::fill_operands(a, b, x);
    float d[4] = {}, e[4] = {};
    ptx::wgmma_fence();
    ptx::wgmma(e, a, b);
    ptx::wgmma_commit_group();
    ptx::wgmma(d, a, b);  // expected finding: accumulator_not_awaited
    ptx::wgmma_commit_group();
#ifdef CLEAN
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#else
    asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
#endif
    for (int i = 0; i < 4; ++i) out[4 * threadIdx.x + i] = d[i];  // expected finding: accumulator_not_awaited
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}
