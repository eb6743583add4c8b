// Each warp passes its own descriptor, but all warps of a warpgroup must pass the same one.
// n = 512, product<<<1, 128>>>(x, out, n)
#include "../ptx.cuh"

__global__ void product(const float* x, float* out, int n) {
    __shared__ __align__(128) unsigned a[512], b[4][64];
    for (int i = threadIdx.x; i < 512; i += 128) a[i] = 0x3f803f80u + (unsigned)x[i % n];
    for (int i = threadIdx.x; i < 256; i += 128) b[i / 64][i % 64] = 0x3f803f80u + (unsigned)x[i];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    float d[4] = {};
    ptx::wgmma_fence();
#ifdef CLEAN
    ptx::wgmma(d, a, b[0]);
#else
    ptx::wgmma(d, a, b[threadIdx.x / 32]);  // expected finding: instruction_misused
#endif
    ptx::wgmma_commit_group();
    ptx::wgmma_wait_group();
    for (int i = 0; i < 4; ++i) out[4 * threadIdx.x + i] = d[i];
}
