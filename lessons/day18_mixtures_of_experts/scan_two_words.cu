// A broken scan: each block waits for its predecessor. The sum and its flag are two words, and nothing orders them.
//
//   x, out: [n]     sums, flags: [tiles + 1], flags zeroed
#include <cuda_runtime.h>

#include "llmk/reduce.cuh"

constexpr int kThreads = 32;  // a tile is a warp, to keep the example short

__global__ void chained_kernel(const int* x, int* out, int* sums, volatile int* flags, int n) {
    const int tile = blockIdx.x, i = tile * kThreads + threadIdx.x;
    const int mine = i < n ? x[i] : 0;
    int up_to_here = mine;
    for (int distance = 1; distance < 32; distance *= 2) {
        const int other = __shfl_up_sync(llmk::kAllLanes, up_to_here, distance);
        if (threadIdx.x >= distance) up_to_here += other;
    }
    int before = 0;
    if (threadIdx.x == 31) {
        if (tile > 0) {
            while (flags[tile] == 0) {
            }
            before = sums[tile];
        }
        sums[tile + 1] = before + up_to_here;
        flags[tile + 1] = 1;
    }
    before = __shfl_sync(llmk::kAllLanes, before, 31);
    if (i < n) out[i] = before + up_to_here - mine;
}

extern "C" void scan(const int* x, int* out, int* sums, int* flags, int n, cudaStream_t stream) {
    chained_kernel<<<(n + kThreads - 1) / kThreads, kThreads, 0, stream>>>(x, out, sums, flags, n);
}
