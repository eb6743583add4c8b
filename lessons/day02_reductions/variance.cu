// Mean and variance of each row, version by version. The versions differ in their error for a row with a large mean.
//
// Version 1: mean(x^2) - mean(x)^2. One pass, and wrong where the mean is large.
// Version 2: the mean first, then the squared distances from it. Two passes.
// Version 3: Welford: mean and squared distances are updated together, element by element. One pass.
//            Chan's formula combines the threads' results.
#include <cuda_runtime.h>

constexpr unsigned kAllLanes = 0xffffffffu;

__device__ float warp_sum(float mine) {
    for (int distance = 16; distance > 0; distance /= 2) mine += __shfl_xor_sync(kAllLanes, mine, distance);
    return mine;
}

// ---------------------------------------------------------------------------------------------------------------------
// The kernels. x is (rows, cols); mean and variance are (rows). One warp, which is one block, per row.

// Version 1: two sums, and a difference at the end.
__global__ void variance_kernel1(const float* x, float* mean, float* variance, int cols) {
    x += static_cast<long long>(blockIdx.x) * cols;
    float sum = 0.0f;
    float squares = 0.0f;
    for (int col = threadIdx.x; col < cols; col += 32) {
        sum += x[col];
        squares += x[col] * x[col];
    }
    const float m = warp_sum(sum) / cols;
    const float mean_of_squares = warp_sum(squares) / cols;
    if (threadIdx.x == 0) {
        mean[blockIdx.x] = m;
        variance[blockIdx.x] = mean_of_squares - m * m;
    }
}

// Version 2: the row is read twice.
__global__ void variance_kernel2(const float* x, float* mean, float* variance, int cols) {
    x += static_cast<long long>(blockIdx.x) * cols;
    float sum = 0.0f;
    for (int col = threadIdx.x; col < cols; col += 32) sum += x[col];
    const float m = warp_sum(sum) / cols;
    float squares = 0.0f;
    for (int col = threadIdx.x; col < cols; col += 32) squares += (x[col] - m) * (x[col] - m);
    squares = warp_sum(squares);
    if (threadIdx.x == 0) {
        mean[blockIdx.x] = m;
        variance[blockIdx.x] = squares / cols;
    }
}

// The moments of a set of numbers: the count, the mean, and the sum of the squared distances from the mean.
struct Moments {
    float count;
    float mean;
    float deviations;
};

// Welford: the moments of a set and one more element.
__device__ Moments with_element(Moments a, float value) {
    a.count += 1.0f;
    const float delta = value - a.mean;
    a.mean += delta / a.count;
    a.deviations += delta * (value - a.mean);
    return a;
}

// Chan: the moments of the union of two sets.
__device__ Moments combine(Moments a, Moments b) {
    if (b.count == 0.0f) return a;
    const float count = a.count + b.count;
    const float delta = b.mean - a.mean;
    return {count, a.mean + delta * b.count / count,
            a.deviations + b.deviations + delta * delta * a.count * b.count / count};
}

// Version 3: reads the row once, and never subtracts two large squares.
__global__ void variance_kernel3(const float* x, float* mean, float* variance, int cols) {
    x += static_cast<long long>(blockIdx.x) * cols;
    Moments mine{0.0f, 0.0f, 0.0f};
    for (int col = threadIdx.x; col < cols; col += 32) mine = with_element(mine, x[col]);
    for (int distance = 16; distance > 0; distance /= 2) {
        Moments other;
        other.count = __shfl_down_sync(kAllLanes, mine.count, distance);
        other.mean = __shfl_down_sync(kAllLanes, mine.mean, distance);
        other.deviations = __shfl_down_sync(kAllLanes, mine.deviations, distance);
        mine = combine(mine, other);
    }
    if (threadIdx.x == 0) {
        mean[blockIdx.x] = mine.mean;
        variance[blockIdx.x] = mine.deviations / cols;
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// The launchers.

extern "C" void variance_1(const float* x, float* mean, float* variance, int rows, int cols, cudaStream_t stream) {
    variance_kernel1<<<rows, 32, 0, stream>>>(x, mean, variance, cols);
}

extern "C" void variance_2(const float* x, float* mean, float* variance, int rows, int cols, cudaStream_t stream) {
    variance_kernel2<<<rows, 32, 0, stream>>>(x, mean, variance, cols);
}

extern "C" void variance_3(const float* x, float* mean, float* variance, int rows, int cols, cudaStream_t stream) {
    variance_kernel3<<<rows, 32, 0, stream>>>(x, mean, variance, cols);
}
