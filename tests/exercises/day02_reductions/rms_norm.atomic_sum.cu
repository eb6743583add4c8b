// A correct RMSNorm with a different design: one element per access, kept in registers; the warps add their sums of
// squares to one number in shared memory with atomics.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

constexpr int kThreads = 1024;
constexpr int kKept = 8;  // elements that a thread keeps; the rest of a wider row is read twice

// x, out: (rows, cols), one block per row; weight: (cols).
template <typename T>
__global__ void norm_rows(const T* x, const T* weight, T* out, int cols, float eps) {
    __shared__ float squares;
    if (threadIdx.x == 0) squares = 0.0f;
    __syncthreads();
    const T* x_row = x + static_cast<long long>(blockIdx.x) * cols;
    T* out_row = out + static_cast<long long>(blockIdx.x) * cols;

    float kept[kKept];
    float mine = 0.0f;
#pragma unroll
    for (int k = 0; k < kKept; ++k) {
        const int col = k * kThreads + threadIdx.x;
        kept[k] = col < cols ? static_cast<float>(x_row[col]) : 0.0f;
        mine += kept[k] * kept[k];
    }
    for (int col = kKept * kThreads + threadIdx.x; col < cols; col += kThreads) {
        const float value = static_cast<float>(x_row[col]);
        mine += value * value;
    }
    for (int distance = 1; distance < 32; distance *= 2) mine += __shfl_down_sync(0xffffffffu, mine, distance);
    if (threadIdx.x % 32 == 0) atomicAdd(&squares, mine);
    __syncthreads();
    const float scale = rsqrtf(squares / cols + eps);

#pragma unroll
    for (int k = 0; k < kKept; ++k) {
        const int col = k * kThreads + threadIdx.x;
        if (col < cols) out_row[col] = static_cast<T>(kept[k] * scale * static_cast<float>(weight[col]));
    }
    for (int col = kKept * kThreads + threadIdx.x; col < cols; col += kThreads) {
        out_row[col] = static_cast<T>(static_cast<float>(x_row[col]) * scale * static_cast<float>(weight[col]));
    }
}

template <typename T>
void launch(const T* x, const T* weight, T* out, int rows, int cols, float eps, cudaStream_t stream) {
    if (rows == 0 || cols == 0) return;
    norm_rows<<<rows, kThreads, 0, stream>>>(x, weight, out, cols, eps);
}
