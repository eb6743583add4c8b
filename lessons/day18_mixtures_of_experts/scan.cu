// Prefix sums of n ints, out[i] = x[0] + ... + x[i - 1]: version 1 with one block, version 2 with three launches.
//
//   x, out: [n]     sums: [tiles], with tiles of 1024
#include <cuda_runtime.h>

#include "llmk/reduce.cuh"

constexpr int kThreads = 1024;

// Return, in lane i, the sum over lanes 0 ... i.
__device__ int warp_inclusive_scan(int mine) {
    for (int distance = 1; distance < 32; distance *= 2) {
        const int other = __shfl_up_sync(llmk::kAllLanes, mine, distance);
        if (threadIdx.x % 32 >= distance) mine += other;
    }
    return mine;
}

// Return the sum over the threads before this one, and in `total` the sum over all.
__device__ int block_exclusive_scan(int mine, int& total) {
    __shared__ int warp_sums[32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int up_to_here = warp_inclusive_scan(mine);
    __syncthreads();  // the previous call's sums have been read
    if (lane == 31) warp_sums[warp] = up_to_here;
    __syncthreads();
    const int up_to_warp = warp_inclusive_scan(warp_sums[lane]);
    total = __shfl_sync(llmk::kAllLanes, up_to_warp, 31);
    const int of_warp = __shfl_sync(llmk::kAllLanes, warp_sums[lane], warp);
    return __shfl_sync(llmk::kAllLanes, up_to_warp, warp) - of_warp + up_to_here - mine;
}

// Version 1: one block goes through x tile by tile, and carries the sum along.
__global__ void __launch_bounds__(kThreads) scan_kernel1(const int* x, int* out, int n) {
    int before = 0;
    for (int first = 0; first < n; first += kThreads) {
        const int i = first + threadIdx.x;
        int total;
        const int sum = block_exclusive_scan(i < n ? x[i] : 0, total);
        if (i < n) out[i] = before + sum;
        before += total;
    }
}

// Version 2: sum each tile, scan the sums, then scan each tile again, starting from its scanned sum.
__global__ void __launch_bounds__(kThreads) tile_sums(const int* x, int* sums, int n) {
    const int i = blockIdx.x * kThreads + threadIdx.x;
    int total;
    block_exclusive_scan(i < n ? x[i] : 0, total);
    if (threadIdx.x == 0) sums[blockIdx.x] = total;
}

__global__ void __launch_bounds__(kThreads) scan_tiles(const int* x, const int* before, int* out, int n) {
    const int i = blockIdx.x * kThreads + threadIdx.x;
    int total;
    const int sum = block_exclusive_scan(i < n ? x[i] : 0, total);
    if (i < n) out[i] = before[blockIdx.x] + sum;
}

extern "C" void scan_1(const int* x, int* out, int* sums, int n, cudaStream_t stream) {
    scan_kernel1<<<1, kThreads, 0, stream>>>(x, out, n);
}

extern "C" void scan_2(const int* x, int* out, int* sums, int n, cudaStream_t stream) {
    const int tiles = (n + kThreads - 1) / kThreads;
    tile_sums<<<tiles, kThreads, 0, stream>>>(x, sums, n);
    scan_kernel1<<<1, kThreads, 0, stream>>>(sums, sums, tiles);
    scan_tiles<<<tiles, kThreads, 0, stream>>>(x, sums, out, n);
}
