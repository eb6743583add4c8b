// The next tile is copied into the buffer that other threads still read: the second barrier is missing.
// n = 512, stream_tiles<<<1, 128>>>(x, out, n)
#include <cuda_pipeline.h>

__global__ void stream_tiles(const float* x, float* out, int n) {
    __shared__ float tile[128];
    const int t = threadIdx.x;
    for (int first = 0; first < n; first += 128) {
        __pipeline_memcpy_async(&tile[t], &x[first + t], sizeof(float));  // expected finding: within_block within_warp
        __pipeline_commit();
        __pipeline_wait_prior(0);
        __syncthreads();
        out[first + t] = tile[127 - t];  // expected finding: within_block within_warp
#ifdef CLEAN
        __syncthreads();
#endif
    }
}
