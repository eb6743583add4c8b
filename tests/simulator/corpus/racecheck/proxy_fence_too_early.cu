// The proxy fence precedes the write that the bulk store must see.
// n = 128, tile<<<1, 128>>>(x, out, n)
#include "../ptx.cuh"

__global__ void tile(const float* x, float* out, int n) {
    __shared__ __align__(16) float data[128];
#ifndef CLEAN
    asm volatile("fence.proxy.async;" ::: "memory");
#endif
    data[threadIdx.x] = 2 * x[threadIdx.x];  // expected finding: missing_proxy_fence
    __syncthreads();
    if (threadIdx.x == 0) {
#ifdef CLEAN
        asm volatile("fence.proxy.async;" ::: "memory");
#endif
        ptx::bulk_store(out, data, sizeof(data));  // expected finding: missing_proxy_fence
        asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    }
}
