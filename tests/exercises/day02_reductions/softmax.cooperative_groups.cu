// A correct softmax with a different design: cooperative groups. Each thread reads one element at a time and updates
// its maximum, which starts at -infinity, and its sum. A tree in shared memory merges the results of the warps.
#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>

namespace cg = cooperative_groups;

constexpr int kThreads = 512;
constexpr int kKept = 16;  // elements that a thread keeps; the rest of a wider row is read twice

__device__ void join(float& maximum, float& sum, float other_maximum, float other_sum) {
    const float larger = fmaxf(maximum, other_maximum);
    if (larger == -INFINITY) return;  // both sets are empty or contain only -infinity
    sum = sum * expf(maximum - larger) + other_sum * expf(other_maximum - larger);
    maximum = larger;
}

// x, out: (rows, cols), one block per row.
template <typename T>
__global__ void softmax_rows(const T* x, T* out, int cols) {
    const cg::thread_block block = cg::this_thread_block();
    const auto warp = cg::tiled_partition<32>(block);
    __shared__ float maxima[kThreads / 32];
    __shared__ float sums[kThreads / 32];
    x += static_cast<long long>(blockIdx.x) * cols;
    out += static_cast<long long>(blockIdx.x) * cols;

    float kept[kKept];
    float maximum = -INFINITY;
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < kKept; ++k) {
        const int col = k * kThreads + threadIdx.x;
        kept[k] = col < cols ? static_cast<float>(x[col]) : -INFINITY;
        join(maximum, sum, kept[k], 1.0f);
    }
    for (int col = kKept * kThreads + threadIdx.x; col < cols; col += kThreads) {
        join(maximum, sum, static_cast<float>(x[col]), 1.0f);
    }

    for (int distance = warp.size() / 2; distance > 0; distance /= 2) {
        const float other_maximum = warp.shfl_down(maximum, distance);
        const float other_sum = warp.shfl_down(sum, distance);
        join(maximum, sum, other_maximum, other_sum);
    }
    if (warp.thread_rank() == 0) {
        maxima[threadIdx.x / 32] = maximum;
        sums[threadIdx.x / 32] = sum;
    }
    block.sync();
    for (int half = kThreads / 64; half > 0; half /= 2) {
        if (threadIdx.x < half) {
            join(maxima[threadIdx.x], sums[threadIdx.x], maxima[threadIdx.x + half], sums[threadIdx.x + half]);
        }
        block.sync();
    }

#pragma unroll
    for (int k = 0; k < kKept; ++k) {
        const int col = k * kThreads + threadIdx.x;
        if (col < cols) out[col] = static_cast<T>(expf(kept[k] - maxima[0]) / sums[0]);
    }
    for (int col = kKept * kThreads + threadIdx.x; col < cols; col += kThreads) {
        out[col] = static_cast<T>(expf(static_cast<float>(x[col]) - maxima[0]) / sums[0]);
    }
}

template <typename T>
void launch(const T* x, T* out, int rows, int cols, cudaStream_t stream) {
    if (rows == 0 || cols == 0) return;
    softmax_rows<<<rows, kThreads, 0, stream>>>(x, out, cols);
}
