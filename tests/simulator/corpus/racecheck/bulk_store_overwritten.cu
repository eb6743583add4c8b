// The source of a bulk store is overwritten before the copy engine has read it.
// n = 512, tile<<<1, 128>>>(x, out, n)
#include "../ptx.cuh"

__global__ void tile(const float* x, float* out, int n) {
    __shared__ __align__(16) float data[128];
    for (int first = 0; first < n; first += 128) {
#ifdef CLEAN
        if (threadIdx.x == 0) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
#endif
        __syncthreads();
        data[threadIdx.x] = x[first + threadIdx.x];  // expected finding: copy_not_awaited
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        if (threadIdx.x == 0) ptx::bulk_store(out + first, data, sizeof(data));  // expected finding: copy_not_awaited
    }
    if (threadIdx.x == 0) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}
