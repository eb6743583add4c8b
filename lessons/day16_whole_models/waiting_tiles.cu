// Smooth a signal twice in one launch: each pass replaces an element by the mean of its neighbors and itself.
//
//   x, once, out: [n]     finished: [tiles], zeros; for each tile, the number of its inputs that are complete
//
// Tile t of the second pass reads tiles t - 1, t and t + 1 of the first, so it waits for these alone. All blocks must be
// resident, because a block waits for others.
#include <cuda_runtime.h>

#include "llmk/persistent.cuh"

constexpr int kTile = 64;

__device__ void smooth_element(const float* from, float* to, int i, int n) {
    if (i < n) to[i] = (from[max(i - 1, 0)] + from[i] + from[min(i + 1, n - 1)]) / 3;
}

__global__ void smooth_twice(const float* x, float* once, float* out, unsigned* finished, int n) {
    const int tiles = (n + kTile - 1) / kTile;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        smooth_element(x, once, tile * kTile + threadIdx.x, n);
        __syncthreads();  // all threads have stored their elements
        if (threadIdx.x == 0) {
            for (int reader = max(tile - 1, 0); reader <= min(tile + 1, tiles - 1); ++reader) {
                llmk::red_release_add(finished + reader, 1);
            }
        }
    }
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const unsigned inputs = min(tile + 1, tiles - 1) - max(tile - 1, 0) + 1;
        while (llmk::ld_acquire(finished + tile) < inputs) {
        }
        smooth_element(once, out, tile * kTile + threadIdx.x, n);
    }
}

extern "C" void smooth(const float* x, float* once, float* out, unsigned* finished, int n, int blocks,
                       cudaStream_t stream) {
    smooth_twice<<<blocks, kTile, 0, stream>>>(x, once, out, finished, n);
}
