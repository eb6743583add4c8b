// Each block reads what a bulk store of another block wrote before a grid barrier. A grid barrier waits for no copy, and
// the thread that began the store has waited only until the store has read its source.
// n = 256 elements
#include <cooperative_groups.h>

#include "../ptx.cuh"

__global__ void tile(const float* x, float* doubled, float* out) {
    __shared__ __align__(16) float data[64];
    const unsigned own = blockIdx.x * 64, other = (blockIdx.x + 1) % gridDim.x * 64;
    data[threadIdx.x] = 2 * x[own + threadIdx.x];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        ptx::bulk_store(doubled + own, data, sizeof(data));  // expected finding: copy_not_awaited
#ifdef CLEAN
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
#else
        asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
#endif
    }
    cooperative_groups::this_grid().sync();
    out[own + threadIdx.x] = doubled[other + threadIdx.x];  // expected finding: copy_not_awaited
}

__device__ float twice[256];

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
    float* doubled;
    cudaGetSymbolAddress((void**)&doubled, twice);
    void* arguments[] = {&x, &doubled, &out};
    cudaLaunchCooperativeKernel(tile, dim3(4), dim3(64), arguments, 0, stream);
}
