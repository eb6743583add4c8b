// A correct softmax with a different design: shared memory holds the row as floats, and CUB reduces the maximum, then
// the sum. The rest of a longer row is read from global memory again.
#include <cub/block/block_reduce.cuh>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cfloat>

constexpr int kThreads = 256;
constexpr int kHeld = 8192;  // floats of the row in shared memory

struct Larger {
    __device__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

// x, out: (rows, cols), one block per row.
template <typename T>
__global__ void softmax_rows(const T* x, T* out, int cols) {
    using Reduce = cub::BlockReduce<float, kThreads>;
    __shared__ typename Reduce::TempStorage maximum_storage;
    __shared__ typename Reduce::TempStorage sum_storage;
    __shared__ float held[kHeld];
    __shared__ float row_maximum, row_sum;
    x += static_cast<long long>(blockIdx.x) * cols;
    out += static_cast<long long>(blockIdx.x) * cols;

    float maximum = -FLT_MAX;
    for (int col = threadIdx.x; col < cols; col += kThreads) {
        const float value = static_cast<float>(x[col]);
        if (col < kHeld) held[col] = value;
        maximum = fmaxf(maximum, value);
    }
    maximum = Reduce(maximum_storage).Reduce(maximum, Larger());
    if (threadIdx.x == 0) row_maximum = maximum;
    __syncthreads();

    float sum = 0.0f;
    for (int col = threadIdx.x; col < cols; col += kThreads) {
        const float value = expf((col < kHeld ? held[col] : static_cast<float>(x[col])) - row_maximum);
        if (col < kHeld) held[col] = value;
        sum += value;
    }
    sum = Reduce(sum_storage).Sum(sum);
    if (threadIdx.x == 0) row_sum = sum;
    __syncthreads();

    for (int col = threadIdx.x; col < cols; col += kThreads) {
        const float value = col < kHeld ? held[col] : expf(static_cast<float>(x[col]) - row_maximum);
        out[col] = static_cast<T>(value / row_sum);
    }
}

template <typename T>
void launch(const T* x, T* out, int rows, int cols, cudaStream_t stream) {
    if (rows == 0 || cols == 0) return;
    softmax_rows<<<rows, kThreads, 0, stream>>>(x, out, cols);
}
