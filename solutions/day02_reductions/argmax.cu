// Argmax of each row, for f32, f16 and bf16, any width: the lowest column among equal maxima, and the first NaN if any.
//
// The kernel is bound by reading the row once. Each thread reads 16 bytes per access, with several accesses in flight,
// and keeps the best element so far. Its columns increase, so "strictly greater" keeps the lowest. Between threads the
// order of columns is not the order of threads, so the column decides ties.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>

#include "llmk/vector.cuh"

constexpr int kInFlight = 4;  // vectorized accesses in flight per thread
constexpr unsigned kAllLanes = 0xffffffffu;

struct Best {
    float value;
    int col;
};

// Return true if a replaces b in torch's order: NaN is above all numbers, and nothing is above NaN.
__device__ bool is_above(float a, float b) { return !(a <= b) && b == b; }

__device__ Best better(Best a, Best b) {
    if (is_above(a.value, b.value)) return a;
    if (is_above(b.value, a.value)) return b;
    return a.col < b.col ? a : b;
}

// Return the best of all 32 lanes, in every lane.
__device__ Best warp_best(Best mine) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
        Best other;
        other.value = __shfl_xor_sync(kAllLanes, mine.value, distance);
        other.col = __shfl_xor_sync(kAllLanes, mine.col, distance);
        mine = better(mine, other);
    }
    return mine;
}

// x: (rows, cols), one block per row; out: (rows).
template <int kWidth, typename T>
__global__ void __launch_bounds__(1024) argmax_kernel(const T* x, int* out, int cols) {
    using Access = llmk::Vector<T, kWidth>;
    const T* x_row = x + static_cast<long long>(blockIdx.x) * cols;
    const int own = threadIdx.x * kWidth;  // the column where this thread's first vector begins
    const int step = blockDim.x * kWidth;  // columns from one of its vectors to the next

    // In a row of -infinity no element replaces the start value. Thread 0 starts with column 0, the right answer.
    Best mine{-INFINITY, own};
#pragma unroll 1
    for (int start = own; start < cols; start += kInFlight * step) {
        Access vector[kInFlight];
#pragma unroll
        for (int p = 0; p < kInFlight; ++p) {
            const int col = start + p * step;
            if (col < cols) vector[p] = *reinterpret_cast<const Access*>(x_row + col);
        }
#pragma unroll
        for (int p = 0; p < kInFlight; ++p) {
            const int col = start + p * step;
            if (col >= cols) break;
#pragma unroll
            for (int j = 0; j < kWidth; ++j) {
                const float value = vector[p].get(j);
                if (is_above(value, mine.value)) mine = {value, col + j};
            }
        }
    }

    __shared__ Best partial[32];
    mine = warp_best(mine);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = mine;
    __syncthreads();
    if (threadIdx.x < 32) {
        // Lanes past the number of warps take the first warp's best, which changes nothing.
        mine = warp_best(partial[threadIdx.x < blockDim.x / 32 ? threadIdx.x : 0]);
        if (threadIdx.x == 0) out[blockIdx.x] = mine.col;
    }
}

template <typename T>
void launch(const T* x, int* out, int rows, int cols, cudaStream_t stream) {
    if (rows == 0 || cols == 0) return;
    constexpr int kWidth = llmk::kVectorWidth<T>;
    // Use 16-byte accesses if every row starts at a multiple of 16 bytes, and single elements otherwise.
    const bool wide = llmk::rows_are_aligned(cols, x);
    const int per_warp = 32 * kInFlight * (wide ? kWidth : 1);
    const int warps = cols < 32 * per_warp ? (cols + per_warp - 1) / per_warp : 32;
    if (wide) {
        argmax_kernel<kWidth><<<rows, 32 * warps, 0, stream>>>(x, out, cols);
    } else {
        argmax_kernel<1><<<rows, 32 * warps, 0, stream>>>(x, out, cols);
    }
}

extern "C" void argmax_f32(const float* x, int* out, int rows, int cols, cudaStream_t stream) {
    launch(x, out, rows, cols, stream);
}

extern "C" void argmax_f16(const __half* x, int* out, int rows, int cols, cudaStream_t stream) {
    launch(x, out, rows, cols, stream);
}

extern "C" void argmax_bf16(const __nv_bfloat16* x, int* out, int rows, int cols, cudaStream_t stream) {
    launch(x, out, rows, cols, stream);
}
