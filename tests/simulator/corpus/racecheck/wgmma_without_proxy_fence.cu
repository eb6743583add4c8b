// Threads write a tile that wgmma reads. Without a proxy fence wgmma may not see the writes.
// n = 512, product<<<1, 128>>>(x, out, n)
#include "../ptx.cuh"

__global__ void product(const float* x, float* out, int n) {
    __shared__ __align__(128) unsigned a[512], b[64];
    for (int i = threadIdx.x; i < 512; i += 128) a[i] = 0x3f803f80u + (unsigned)x[i % n];  // expected finding: missing_proxy_fence
    if (threadIdx.x < 64) b[threadIdx.x] = 0x3f803f80u + (unsigned)x[threadIdx.x];         // expected finding: missing_proxy_fence
#ifdef CLEAN
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
    __syncthreads();
    float d[4] = {};
    ptx::wgmma_fence();
    ptx::wgmma(d, a, b);  // expected finding: missing_proxy_fence
    ptx::wgmma_commit_group();
    ptx::wgmma_wait_group();
    for (int i = 0; i < 4; ++i) out[4 * threadIdx.x + i] = d[i];
}
