// Warps 1 to 4 execute wgmma, but the number of the first warp of a warpgroup must be a multiple of 4.
// n = 512, product<<<1, 256>>>(x, out, n)
#include "../ptx.cuh"

__global__ void product(const float* x, float* out, int n) {
    __shared__ __align__(128) unsigned a[512], b[64];
    for (int i = threadIdx.x; i < 512; i += 256) a[i] = 0x3f803f80u + (unsigned)x[i % n];
    if (threadIdx.x < 64) b[threadIdx.x] = 0x3f803f80u + (unsigned)x[threadIdx.x];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
#ifdef CLEAN
    const int i = threadIdx.x - 128;
#else
    const int i = threadIdx.x - 32;
#endif
    if (i >= 0 && i < 128) {
        float d[4] = {};
        ptx::wgmma_fence();
        ptx::wgmma(d, a, b);  // expected finding: deadlock
        ptx::wgmma_commit_group();
        ptx::wgmma_wait_group();
        for (int j = 0; j < 4; ++j) out[4 * i + j] = d[j];
    }
    __syncthreads();  // expected finding: deadlock
}
