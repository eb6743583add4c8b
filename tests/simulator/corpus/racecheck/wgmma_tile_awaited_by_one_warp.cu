// Only one of the four warps waits for the copy of a tile before wgmma reads it.
// n = 512, product<<<1, 128>>>(x, out, n)
#include "../ptx.cuh"

__global__ void product(const float* x, float* out, int n) {
    __shared__ __align__(128) unsigned a[512], b[64];
    __shared__ uint64_t full;
    if (threadIdx.x < 64) b[threadIdx.x] = 0x3f803f80u + (unsigned)x[threadIdx.x];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    if (threadIdx.x == 0) ptx::mbarrier_init(&full, 1);
    __syncthreads();
    if (threadIdx.x == 0) {
        ptx::mbarrier_arrive_expect_tx(&full, sizeof(a));
        ptx::bulk_load(a, x, sizeof(a), &full);  // expected finding: copy_not_awaited within_block
    }
    float d[4] = {};
#ifndef CLEAN
    if (threadIdx.x < 32)
#endif
        ptx::mbarrier_wait_parity(&full, 0);
    ptx::wgmma_fence();
    ptx::wgmma(d, a, b);  // expected finding: copy_not_awaited within_block
    ptx::wgmma_commit_group();
    ptx::wgmma_wait_group();
    for (int i = 0; i < 4; ++i) out[4 * threadIdx.x + i] = d[i];
}
