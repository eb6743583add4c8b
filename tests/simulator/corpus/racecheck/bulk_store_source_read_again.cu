// Threads read the source of a bulk store again, and overwrite it after a barrier, which does not wait for the store.
// n = 64, tile<<<1, 64>>>(x, out)
#include "../ptx.cuh"

__global__ void tile(const float* x, float* out) {
    __shared__ __align__(16) float data[64];
    data[threadIdx.x] = 2 * x[threadIdx.x];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) ptx::bulk_store(out, data, sizeof(data));  // expected finding: copy_not_awaited
#ifdef CLEAN
    if (threadIdx.x == 0) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
#endif
    const float beside = data[threadIdx.x ^ 1] + data[0];
    __syncthreads();
    data[threadIdx.x] = beside;  // expected finding: copy_not_awaited
    __syncthreads();
    if (threadIdx.x == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
