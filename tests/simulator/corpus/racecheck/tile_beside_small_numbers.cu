// Three of four warps read a tile, meet at a named barrier, keep what they found as numbers of two bytes beside the tile, and write it
// anew. Such a barrier orders what its own warps did: the readers are known one by one, also once the memory is watched in smaller pieces.
// n = 96
#include <cuda_runtime.h>

__device__ void meet(int barrier) { asm volatile("bar.sync %0, 96;" ::"r"(barrier) : "memory"); }

__global__ void renew(const float* x, float* out, int n) {
    extern __shared__ float tile[];
    auto* small = reinterpret_cast<unsigned short*>(tile + 96);
    const int t = threadIdx.x;
    if (t < 96) {
        tile[t] = x[t];
        meet(1);
        const float sum = tile[t % 8] + tile[t];  // finding: within_block
#ifdef CLEAN
        meet(2);
#endif
        small[t] = (unsigned short)(int)sum;
        tile[95 - t] = sum;  // finding: within_block
    }
    __syncthreads();
    if (t < n) out[t] = tile[t] + small[t];
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) { renew<<<1, 128, 96 * 6, stream>>>(x, out, n); }
