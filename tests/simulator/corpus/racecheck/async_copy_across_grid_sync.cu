// A cp.async copy is in flight at a grid barrier, which waits for no copy, and its data are read after the barrier.
// n = 128 elements
#include <cooperative_groups.h>
#include <cuda_pipeline.h>

__global__ void tile(const float* x, float* out, int n) {
    __shared__ float data[128];
    __pipeline_memcpy_async(&data[threadIdx.x], &x[threadIdx.x], 4);  // expected finding: copy_not_awaited
    __pipeline_commit();
    cooperative_groups::this_grid().sync();
#ifdef CLEAN
    __pipeline_wait_prior(0);
#endif
    out[threadIdx.x] = data[threadIdx.x];  // expected finding: copy_not_awaited
    __pipeline_wait_prior(0);
    data[threadIdx.x] = 0;
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
    void* arguments[] = {&x, &out, &n};
    cudaLaunchCooperativeKernel(tile, dim3(1), dim3(128), arguments, 0, stream);
}
