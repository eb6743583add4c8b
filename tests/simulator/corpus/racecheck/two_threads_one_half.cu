// Two halves in one 4-byte word are no race, but two threads that write the same half are.
// n = 256, pack<<<1, 256>>>(x, out, n)
#include <cuda_fp16.h>

__global__ void pack(const __half* x, __half* out, int n) {
    __shared__ __half tile[256];
    const int t = threadIdx.x;
#ifdef CLEAN
    tile[t] = x[t];
#else
    tile[t ^ (t == 7)] = x[t];  // expected finding: within_warp
#endif
    __syncthreads();
#ifndef CLEAN
    if (t == 0) tile[7] = x[7];
    __syncthreads();
#endif
    out[t] = tile[255 - t];
}
