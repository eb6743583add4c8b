// The sum of each row, version by version: five ways to let threads add together.
//
// Version 1: one thread per row. Nothing is shared, and almost nothing is coalesced.
// Version 2: one block per row, and a tree in shared memory.
// Version 3: one warp per row, and a tree of shuffles. No shared memory, no barrier.
// Version 4: one block per row: shuffles within each warp, shared memory between the warps.
// Version 5: version 4 with CUB.
#include <cub/block/block_reduce.cuh>
#include <cuda_runtime.h>

constexpr int kThreads = 256;
constexpr unsigned kAllLanes = 0xffffffffu;

// ---------------------------------------------------------------------------------------------------------------------
// The kernels. x is (rows, cols), out is (rows).

// Version 1: thread r walks along row r.
__global__ void sum_kernel1(const float* x, float* out, int rows, int cols) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int col = 0; col < cols; ++col) sum += x[static_cast<long long>(row) * cols + col];
    out[row] = sum;
}

// The sum of one thread's elements: every kThreads-th element of the block's row.
__device__ float own_sum(const float* x_row, int cols) {
    float sum = 0.0f;
    for (int col = threadIdx.x; col < cols; col += kThreads) sum += x_row[col];
    return sum;
}

// Version 2: in each step the lower half of the threads adds the values of the upper half.
__global__ void sum_kernel2(const float* x, float* out, int cols) {
    __shared__ float partial[kThreads];
    partial[threadIdx.x] = own_sum(x + static_cast<long long>(blockIdx.x) * cols, cols);
    __syncthreads();
    for (int half = kThreads / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = partial[0];
}

// Five times, lane i reads the value of lane i + distance and adds it to its own. Lane 0 gets the sum of all 32.
__device__ float warp_sum(float mine) {
    for (int distance = 16; distance > 0; distance /= 2) mine += __shfl_down_sync(kAllLanes, mine, distance);
    return mine;
}

// Version 3: a warp per row, kThreads / 32 rows per block.
__global__ void sum_kernel3(const float* x, float* out, int rows, int cols) {
    const int row = blockIdx.x * (kThreads / 32) + threadIdx.x / 32;
    if (row >= rows) return;  // all lanes of a warp have the same row: none waits for a lane that has left
    const float* x_row = x + static_cast<long long>(row) * cols;
    float sum = 0.0f;
    for (int col = threadIdx.x % 32; col < cols; col += 32) sum += x_row[col];
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) out[row] = sum;
}

// Version 4: each warp writes one number to shared memory, and the first warp adds those numbers.
__global__ void sum_kernel4(const float* x, float* out, int cols) {
    __shared__ float partial[kThreads / 32];
    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
    float sum = warp_sum(own_sum(x + static_cast<long long>(blockIdx.x) * cols, cols));
    if (lane == 0) partial[warp] = sum;
    __syncthreads();
    if (warp == 0) {
        sum = warp_sum(lane < kThreads / 32 ? partial[lane] : 0.0f);
        if (lane == 0) out[blockIdx.x] = sum;
    }
}

// Version 5: the same idea from a library that is tuned for each GPU.
__global__ void sum_kernel5(const float* x, float* out, int cols) {
    using BlockReduce = cub::BlockReduce<float, kThreads>;
    __shared__ typename BlockReduce::TempStorage storage;
    const float sum = BlockReduce(storage).Sum(own_sum(x + static_cast<long long>(blockIdx.x) * cols, cols));
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

// ---------------------------------------------------------------------------------------------------------------------
// The launchers.

extern "C" void sum_1(const float* x, float* out, int rows, int cols, cudaStream_t stream) {
    sum_kernel1<<<(rows + kThreads - 1) / kThreads, kThreads, 0, stream>>>(x, out, rows, cols);
}

extern "C" void sum_2(const float* x, float* out, int rows, int cols, cudaStream_t stream) {
    sum_kernel2<<<rows, kThreads, 0, stream>>>(x, out, cols);
}

extern "C" void sum_3(const float* x, float* out, int rows, int cols, cudaStream_t stream) {
    sum_kernel3<<<rows / (kThreads / 32) + 1, kThreads, 0, stream>>>(x, out, rows, cols);
}

extern "C" void sum_4(const float* x, float* out, int rows, int cols, cudaStream_t stream) {
    sum_kernel4<<<rows, kThreads, 0, stream>>>(x, out, cols);
}

extern "C" void sum_5(const float* x, float* out, int rows, int cols, cudaStream_t stream) {
    sum_kernel5<<<rows, kThreads, 0, stream>>>(x, out, cols);
}
