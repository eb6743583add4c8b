// Lanes exchange data through shared memory with a shuffle in between, which does not order memory accesses.
// n = 32 elements
#include <cuda_runtime.h>

__global__ void rotate(const float* x, float* out, int n) {
    __shared__ float tile[32];
    const int lane = threadIdx.x;
    tile[lane] = x[lane];  // expected finding: within_warp
    const float first = __shfl_sync(0xffffffffu, x[lane], 0);
#ifdef CLEAN
    __syncwarp();
#endif
    out[lane] = first + tile[(lane + 1) % 32];  // expected finding: within_warp
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) { rotate<<<1, 32, 0, stream>>>(x, out, n); }
