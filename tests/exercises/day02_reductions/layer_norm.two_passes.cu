// A correct LayerNorm with a different design: two passes instead of Welford's algorithm. The row stays in registers.
// Block sums compute first the mean, then the squared distances from it. The part of a row that does not fit into
// registers is read again in each pass.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

constexpr int kThreads = 512;
constexpr int kKept = 16;

// Returns the sum over the block to every thread. Barriers before and after the use of `partial` allow a second call.
__device__ float block_sum(float mine) {
    __shared__ float partial[kThreads / 32];
    for (int distance = 16; distance > 0; distance /= 2) mine += __shfl_xor_sync(0xffffffffu, mine, distance);
    __syncthreads();
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = mine;
    __syncthreads();
    float sum = 0.0f;
    for (int warp = 0; warp < kThreads / 32; ++warp) sum += partial[warp];
    return sum;
}

// x, out: (rows, cols), one block per row; weight, bias: (cols).
template <typename T>
__global__ void norm_rows(const T* x, const T* weight, const T* bias, T* out, int cols, float eps) {
    x += static_cast<long long>(blockIdx.x) * cols;
    out += static_cast<long long>(blockIdx.x) * cols;
    constexpr int kFirst = kKept * kThreads;  // first column that is not kept in registers

    float kept[kKept];
    float sum = 0.0f;
    // Sum distances from the first element. They are small even if the mean is large, so little is lost by rounding.
    const float origin = static_cast<float>(x[0]);
#pragma unroll
    for (int k = 0; k < kKept; ++k) {
        const int col = k * kThreads + threadIdx.x;
        kept[k] = col < cols ? static_cast<float>(x[col]) : origin;
        sum += kept[k] - origin;
    }
    for (int col = kFirst + threadIdx.x; col < cols; col += kThreads) sum += static_cast<float>(x[col]) - origin;
    const float mean = origin + block_sum(sum) / cols;

    float squares = 0.0f;
#pragma unroll
    for (int k = 0; k < kKept; ++k) {
        const float deviation = kept[k] - mean;
        if (k * kThreads + threadIdx.x < cols) squares += deviation * deviation;
    }
    for (int col = kFirst + threadIdx.x; col < cols; col += kThreads) {
        const float deviation = static_cast<float>(x[col]) - mean;
        squares += deviation * deviation;
    }
    const float scale = rsqrtf(block_sum(squares) / cols + eps);

    auto store = [&](int col, float value) {
        out[col] =
            static_cast<T>((value - mean) * scale * static_cast<float>(weight[col]) + static_cast<float>(bias[col]));
    };
#pragma unroll
    for (int k = 0; k < kKept; ++k) {
        const int col = k * kThreads + threadIdx.x;
        if (col < cols) store(col, kept[k]);
    }
    for (int col = kFirst + threadIdx.x; col < cols; col += kThreads) store(col, static_cast<float>(x[col]));
}

template <typename T>
void launch(const T* x, const T* weight, const T* bias, T* out, int rows, int cols, float eps, cudaStream_t stream) {
    if (rows == 0 || cols == 0) return;
    norm_rows<<<rows, kThreads, 0, stream>>>(x, weight, bias, out, cols, eps);
}
