// cuda::barrier: arriving publishes the thread's writes, but only waiting makes those of others visible.
// n = 256, rotate<<<1, 256>>>(x, out, n)
#include <cuda/barrier>

using Barrier = cuda::barrier<cuda::thread_scope_block>;

__global__ void rotate(const float* x, float* out, int n) {
    __shared__ float tile[256];
    __shared__ Barrier barrier;
    if (threadIdx.x == 0) init(&barrier, blockDim.x);
    __syncthreads();
    tile[threadIdx.x] = x[threadIdx.x];  // expected finding: within_block within_warp
#ifdef CLEAN
    barrier.arrive_and_wait();
#else
    [[maybe_unused]] auto token = barrier.arrive();
#endif
    out[threadIdx.x] = tile[(threadIdx.x + 64) % 256];  // expected finding: within_block within_warp
}
