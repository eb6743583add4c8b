// A correct LayerNorm with a different design: Welford's update for each element, with the row in shared memory. The
// first warp merges the states of all warps, and shared memory broadcasts the result.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

constexpr int kThreads = 256;
constexpr int kHeld = 8192;  // floats of the row in shared memory

struct State {
    int count;
    float mean, squares;
};

__device__ State join(State a, State b) {
    if (a.count == 0) return b;
    if (b.count == 0) return a;
    const float n = static_cast<float>(a.count + b.count);
    const float delta = b.mean - a.mean;
    return {a.count + b.count, a.mean + delta * (b.count / n),
            a.squares + b.squares + delta * delta * (static_cast<float>(a.count) * b.count / n)};
}

// Lane 0 gets the merged state of the first `lanes` lanes; `lanes` is a power of two.
__device__ State join_lanes(State mine, int lanes) {
    for (int distance = lanes / 2; distance > 0; distance /= 2) {
        const State other{__shfl_down_sync(0xffffffffu, mine.count, distance),
                          __shfl_down_sync(0xffffffffu, mine.mean, distance),
                          __shfl_down_sync(0xffffffffu, mine.squares, distance)};
        mine = join(mine, other);
    }
    return mine;
}

// x, out: (rows, cols), one block per row; weight, bias: (cols).
template <typename T>
__global__ void norm_rows(const T* x, const T* weight, const T* bias, T* out, int cols, float eps) {
    __shared__ float held[kHeld];
    __shared__ int counts[kThreads / 32];
    __shared__ float means[kThreads / 32];
    __shared__ float squares[kThreads / 32];
    __shared__ float row_mean, row_scale;
    x += static_cast<long long>(blockIdx.x) * cols;
    out += static_cast<long long>(blockIdx.x) * cols;

    State mine{0, 0.0f, 0.0f};
    for (int col = threadIdx.x; col < cols; col += kThreads) {
        const float value = static_cast<float>(x[col]);
        if (col < kHeld) held[col] = value;
        mine.count += 1;
        const float delta = value - mine.mean;
        mine.mean += delta / mine.count;
        mine.squares += delta * (value - mine.mean);
    }
    mine = join_lanes(mine, 32);
    const int warp = threadIdx.x / 32;
    if (threadIdx.x % 32 == 0) {
        counts[warp] = mine.count;
        means[warp] = mine.mean;
        squares[warp] = mine.squares;
    }
    __syncthreads();
    if (warp == 0) {
        const int from = threadIdx.x % (kThreads / 32);
        mine = join_lanes({counts[from], means[from], squares[from]}, kThreads / 32);
        if (threadIdx.x == 0) {
            row_mean = mine.mean;
            row_scale = 1.0f / sqrtf(mine.squares / cols + eps);
        }
    }
    __syncthreads();

    for (int col = threadIdx.x; col < cols; col += kThreads) {
        const float value = col < kHeld ? held[col] : static_cast<float>(x[col]);
        const float normalized = (value - row_mean) * row_scale;
        out[col] = static_cast<T>(fmaf(normalized, static_cast<float>(weight[col]), static_cast<float>(bias[col])));
    }
}

template <typename T>
void launch(const T* x, const T* weight, const T* bias, T* out, int rows, int cols, float eps, cudaStream_t stream) {
    if (rows == 0 || cols == 0) return;
    norm_rows<<<rows, kThreads, 0, stream>>>(x, weight, bias, out, cols, eps);
}
