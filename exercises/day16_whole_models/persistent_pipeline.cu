// A chain of matmuls for one token in one launch: h = max(W h, 0) for each layer. A block starts to copy weights of the
// next layer before the grid barrier of this layer, so the memory is busy while the blocks wait for each other.
//
//   x, out: [n]     weights: [layers, n, n]     hidden: [2, n], the workspace: layers write its halves in turn
#include <cooperative_groups.h>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include "llmk/reduce.cuh"

constexpr int kWarps = 8, kThreads = kWarps * 32;

// Dynamic shared memory: input [n], then the rows of each warp [kWarps, slots, n].
__global__ void __launch_bounds__(kThreads, 1)
    pipeline_kernel(const float* x, const float* weights, float* hidden, float* out, int layers, int n, int slots) {
    // TODO: for each layer: load the input, compute this block's rows of max(W h, 0), and wait for all blocks.
    // TODO: Before that wait, start asynchronous copies of the weights of the next layer.
}

extern "C" void persistent_pipeline(const float* x, const float* weights, float* hidden, float* out, int layers, int n,
                                    cudaStream_t stream) {
    if (n == 0) return;
    // TODO: as many slots as shared memory has room for, and a cooperative launch with one block per SM.
}
