// Threads overwrite a tile before they wait for the wgmma that reads it.
// n = 512, product<<<1, 128>>>(x, out, n)
#include "../ptx.cuh"

__global__ void product(const float* x, float* out, int n) {
    __shared__ __align__(128) unsigned a[512], b[64];
    ptx::fill_operands(a, b, x);
    float d[4] = {};
    for (int turn = 0; turn < 2; ++turn) {
        ptx::wgmma_fence();
        ptx::wgmma(d, a, b);  // expected finding: operands_not_awaited
        ptx::wgmma_commit_group();
#ifdef CLEAN
        ptx::wgmma_wait_group();
#endif
        __syncthreads();
        for (int i = threadIdx.x; i < 512; i += 128) a[i] = i + turn;  // expected finding: operands_not_awaited
#ifndef CLEAN
        ptx::wgmma_wait_group();
#endif
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
    }
    for (int i = 0; i < 4; ++i) out[4 * threadIdx.x + i] = d[i];
}
