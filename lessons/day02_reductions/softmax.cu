// Softmax of each row, version by version. The versions differ in how often they read the row.
//
// Version 1: three passes: the maximum, the sum of the exponentials, the result. Reads the row three times.
// Version 2: online: one pass for the maximum and the sum together, one for the result. Reads the row twice.
// Version 3: each thread keeps its elements in registers. Reads the row once, up to 4096 columns.
#include <cuda_runtime.h>

#include <cfloat>
#include <cmath>

constexpr int kThreads = 256;
constexpr int kKept = 16;  // elements that a thread of version 3 keeps in registers
constexpr unsigned kAllLanes = 0xffffffffu;

// ---------------------------------------------------------------------------------------------------------------------
// Reductions. Each leaves its result in every thread.

__device__ float warp_max(float mine) {
    for (int distance = 16; distance > 0; distance /= 2) {
        mine = fmaxf(mine, __shfl_xor_sync(kAllLanes, mine, distance));
    }
    return mine;
}

__device__ float warp_sum(float mine) {
    for (int distance = 16; distance > 0; distance /= 2) mine += __shfl_xor_sync(kAllLanes, mine, distance);
    return mine;
}

__device__ float block_max(float mine) {
    __shared__ float partial[kThreads / 32];
    mine = warp_max(mine);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = mine;
    __syncthreads();
    return warp_max(partial[threadIdx.x % (kThreads / 32)]);  // a warp reads each partial maximum four times: harmless
}

__device__ float block_sum(float mine) {
    __shared__ float partial[kThreads / 32];
    mine = warp_sum(mine);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = mine;
    __syncthreads();
    const int lane = threadIdx.x % 32;
    return warp_sum(lane < kThreads / 32 ? partial[lane] : 0.0f);
}

// ---------------------------------------------------------------------------------------------------------------------
// The kernels. x and out are (rows, cols), one block per row.

// Version 1: read for the maximum, read for the sum, read to write.
__global__ void softmax_kernel1(const float* x, float* out, int cols) {
    x += static_cast<long long>(blockIdx.x) * cols;
    out += static_cast<long long>(blockIdx.x) * cols;
    float maximum = -FLT_MAX;
    for (int col = threadIdx.x; col < cols; col += kThreads) maximum = fmaxf(maximum, x[col]);
    maximum = block_max(maximum);
    float sum = 0.0f;
    for (int col = threadIdx.x; col < cols; col += kThreads) sum += expf(x[col] - maximum);
    sum = block_sum(sum);
    for (int col = threadIdx.x; col < cols; col += kThreads) out[col] = expf(x[col] - maximum) / sum;
}

// Version 2: one pass updates maximum and sum together. When the maximum rises, the sum so far is rescaled to it.
__global__ void softmax_kernel2(const float* x, float* out, int cols) {
    x += static_cast<long long>(blockIdx.x) * cols;
    out += static_cast<long long>(blockIdx.x) * cols;
    float maximum = -FLT_MAX;
    float sum = 0.0f;
    for (int col = threadIdx.x; col < cols; col += kThreads) {
        const float value = x[col];
        const float larger = fmaxf(maximum, value);
        sum = sum * expf(maximum - larger) + expf(value - larger);
        maximum = larger;
    }
    const float row_maximum = block_max(maximum);
    const float row_sum = block_sum(sum * expf(maximum - row_maximum));
    for (int col = threadIdx.x; col < cols; col += kThreads) out[col] = expf(x[col] - row_maximum) / row_sum;
}

// Version 3: the loop over the row becomes a loop over registers. cols must be at most kThreads * kKept.
__global__ void softmax_kernel3(const float* x, float* out, int cols) {
    x += static_cast<long long>(blockIdx.x) * cols;
    out += static_cast<long long>(blockIdx.x) * cols;
    float kept[kKept];
    float maximum = -FLT_MAX;
#pragma unroll
    for (int k = 0; k < kKept; ++k) {
        const int col = k * kThreads + threadIdx.x;
        kept[k] = col < cols ? x[col] : -INFINITY;  // exp(-infinity) = 0: adds nothing to the sum
        maximum = fmaxf(maximum, kept[k]);
    }
    const float row_maximum = block_max(maximum);
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < kKept; ++k) {
        kept[k] = expf(kept[k] - row_maximum);
        sum += kept[k];
    }
    const float row_sum = block_sum(sum);
#pragma unroll
    for (int k = 0; k < kKept; ++k) {
        const int col = k * kThreads + threadIdx.x;
        if (col < cols) out[col] = kept[k] / row_sum;
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// The launchers.

extern "C" void softmax_1(const float* x, float* out, int rows, int cols, cudaStream_t stream) {
    softmax_kernel1<<<rows, kThreads, 0, stream>>>(x, out, cols);
}

extern "C" void softmax_2(const float* x, float* out, int rows, int cols, cudaStream_t stream) {
    softmax_kernel2<<<rows, kThreads, 0, stream>>>(x, out, cols);
}

extern "C" void softmax_3(const float* x, float* out, int rows, int cols, cudaStream_t stream) {
    softmax_kernel3<<<rows, kThreads, 0, stream>>>(x, out, cols);
}
