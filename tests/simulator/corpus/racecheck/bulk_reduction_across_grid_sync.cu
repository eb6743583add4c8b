// All blocks add to one tile by bulk reductions, and read the sum after a grid barrier, which waits for no copy.
// n = 256 elements
#include <cooperative_groups.h>

#include "../ptx.cuh"

__global__ void sum(const float* x, float* total, float* out) {
    __shared__ __align__(16) float data[64];
    const unsigned own = blockIdx.x * 64;
    data[threadIdx.x] = x[own + threadIdx.x];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        ptx::bulk_add(total, data, sizeof(data));  // expected finding: copy_not_awaited
#ifdef CLEAN
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
#else
        asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
#endif
    }
    cooperative_groups::this_grid().sync();
    out[own + threadIdx.x] = total[threadIdx.x];  // expected finding: copy_not_awaited
}

__device__ float sums[64];

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
    float* total;
    cudaGetSymbolAddress((void**)&total, sums);
    cudaMemsetAsync(total, 0, sizeof(sums), stream);
    void* arguments[] = {&x, &total, &out};
    cudaLaunchCooperativeKernel(sum, dim3(4), dim3(64), arguments, 0, stream);
}
