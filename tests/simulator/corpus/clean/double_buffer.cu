// Copies asynchronously into two alternating buffers, with a wait for the copies and both necessary barriers.
// n = 1024, stream_tiles<<<1, 128>>>(x, out, n)
#include <cuda_pipeline.h>

__global__ void stream_tiles(const float* x, float* out, int n) {
    __shared__ float tile[2][128];
    const int t = threadIdx.x, count = n / 128;
    __pipeline_memcpy_async(&tile[0][t], &x[t], sizeof(float));
    __pipeline_commit();
    for (int i = 0; i < count; ++i) {
        if (i + 1 < count) __pipeline_memcpy_async(&tile[(i + 1) % 2][t], &x[(i + 1) * 128 + t], sizeof(float));
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        out[i * 128 + t] = tile[i % 2][127 - t];
        __syncthreads();
    }
}
