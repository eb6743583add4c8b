// The source of a bulk store is overwritten after a grid barrier, which does not wait until the store has read it.
// n = 64 elements
#include <cooperative_groups.h>

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
    cooperative_groups::this_grid().sync();
    data[threadIdx.x] = x[threadIdx.x];  // expected finding: copy_not_awaited
    __syncthreads();
    if (threadIdx.x == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
    void* arguments[] = {&x, &out};
    cudaLaunchCooperativeKernel(tile, dim3(1), dim3(64), arguments, 0, stream);
}
