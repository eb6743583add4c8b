// A thread waits for its own copies, but also reads those of other threads without a barrier.
// n = 128, stage<<<1, 128>>>(x, out, n)
#include <cuda_pipeline.h>

__global__ void stage(const float* x, float* out, int n) {
    __shared__ float tile[128];
    __pipeline_memcpy_async(&tile[threadIdx.x], &x[threadIdx.x], sizeof(float));  // expected finding: within_block copy_not_awaited within_warp
    __pipeline_commit();
    __pipeline_wait_prior(0);
#ifdef CLEAN
    __syncthreads();
#endif
    out[threadIdx.x] = tile[127 - threadIdx.x];  // expected finding: within_block copy_not_awaited within_warp
}
