// The last tile is copied completely, although the input ends inside the tile.
// stage<<<(n + 127) / 128, 128>>>(x, out, n)
#include <cuda_pipeline.h>

__global__ void stage(const float* x, float* out, int n) {
    __shared__ float tile[128];
    const int i = blockIdx.x * 128 + threadIdx.x;
#ifdef CLEAN
    const bool inside = i < n;
#else
    const bool inside = true;
#endif
    if (inside) __pipeline_memcpy_async(&tile[threadIdx.x], &x[i], sizeof(float));  // expected finding: out_of_bounds
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    if (i < n) out[i] = tile[threadIdx.x];
}
