// Threads write the source of a bulk store. Without a proxy fence the bulk store may not see the writes.
// n = 128, tile<<<1, 128>>>(x, out, n)
#include "../ptx.cuh"

__global__ void tile(const float* x, float* out, int n) {
    __shared__ __align__(16) float data[128];
    data[threadIdx.x] = 2 * x[threadIdx.x];  // expected finding: missing_proxy_fence
#ifdef CLEAN
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
    __syncthreads();
    if (threadIdx.x == 0) {
        ptx::bulk_store(out, data, sizeof(data));  // expected finding: missing_proxy_fence
        asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
    }
}
