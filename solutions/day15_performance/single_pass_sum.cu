// The sum of n floats in one launch: the last block to finish adds up the partial sums of all blocks.
//
//   x: [n]     partials: [ceil(n / 4096)]     out, counter: [1]; counter is 0 before and after
#include <cuda_runtime.h>

#include <algorithm>

#include "llmk/reduce.cuh"

constexpr int kThreads = 256;
constexpr int kSlice = 4096;
constexpr int kEach = kSlice / kThreads;  // elements of a slice per thread

// Block b sums slice b.
__global__ void __launch_bounds__(kThreads)
    sum_kernel(const float* x, float* out, float* partials, int* counter, int n, int slices) {
    const long long first = static_cast<long long>(blockIdx.x) * kSlice + threadIdx.x;
    float mine = 0.0f;
#pragma unroll
    for (int j = 0; j < kEach; ++j) {
        if (first + j * kThreads < n) mine += x[first + j * kThreads];
    }
    const float sum = llmk::block_sum(mine);

    __shared__ bool last;
    if (threadIdx.x == 0) {
        if (blockIdx.x < slices) partials[blockIdx.x] = sum;
        __threadfence();  // a block that sees this block's increment also sees its partial sum
        last = atomicAdd(counter, 1) == static_cast<int>(gridDim.x) - 1;
        __threadfence();  // later reads see what other blocks wrote before their increments
    }
    __syncthreads();
    if (!last) return;

    // Thread t adds up partials t, t + kThreads, ...: the order is fixed, whichever block is last.
    float of_mine = 0.0f;
    for (int i = threadIdx.x; i < slices; i += kThreads) of_mine += partials[i];
    const float total = llmk::block_sum(of_mine);
    if (threadIdx.x == 0) {
        out[0] = total;
        counter[0] = 0;  // reset for the next launch
    }
}

extern "C" void single_pass_sum(const float* x, float* out, float* partials, int* counter, int n, cudaStream_t stream) {
    const int slices = n / kSlice + (n % kSlice != 0);
    // For n = 0, one block without a slice writes the sum.
    sum_kernel<<<std::max(slices, 1), kThreads, 0, stream>>>(x, out, partials, counter, n, slices);
}
