// The tile is read before the thread waits for the asynchronous copy into it.
// n = 128, stage<<<1, 128>>>(x, out, n)
#include <cuda_pipeline.h>

__global__ void stage(const float* x, float* out, int n) {
    __shared__ float tile[128];
    tile[threadIdx.x] = 0;
    __syncthreads();
    __pipeline_memcpy_async(&tile[threadIdx.x], &x[threadIdx.x], sizeof(float));  // expected finding: copy_not_awaited
    __pipeline_commit();
#ifdef CLEAN
    __pipeline_wait_prior(0);
#endif
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x];  // expected finding: copy_not_awaited
}
