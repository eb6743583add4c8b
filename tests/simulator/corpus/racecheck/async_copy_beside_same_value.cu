// Threads write zeros to shared memory during a copy into it. The memory already contained zeros, but the order of copy
// and writes is still undefined.
// n = 128, fetch<<<1, 128>>>(x, out, n)
#include <cuda_pipeline.h>

__global__ void fetch(const float* x, float* out, int n) {
    __shared__ float tile[128];
    const int t = threadIdx.x;
    tile[t] = 0;
    __pipeline_memcpy_async(&tile[t], &x[t], sizeof(float));  // expected finding: copy_not_awaited
    __pipeline_commit();
#ifdef CLEAN
    __pipeline_wait_prior(0);
#endif
    tile[t] = 0;  // expected finding: copy_not_awaited
    __pipeline_wait_prior(0);
    out[t] = tile[t];
}
