// Softmax of each row: out = exp(x - max) / sum(exp(x - max)), for f32, f16 and bf16, any width.
//
// Online: a running maximum and a running sum are updated together, and the sum is rescaled whenever the maximum grows.
// So one pass over the row computes both. A thread keeps its elements in registers (64 bytes), so a row that fits in
// the block is read once and written once. A wider row is processed in tiles: forward for the maximum and the sum,
// then, since the last tile is still in registers, backward to write.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cfloat>
#include <cmath>
#include <cstdint>

#include "llmk/vector.cuh"

constexpr int kInFlight = 4;  // vectorized accesses in flight per thread
constexpr unsigned kAllLanes = 0xffffffffu;

// The maximum of some elements, and the sum of exp(element - maximum). An empty set has -FLT_MAX, not -infinity, so
// that no difference of two maxima is infinity - infinity, which is NaN.
struct Running {
    float maximum;
    float sum;
};

__device__ Running nothing_seen() { return {-FLT_MAX, 0.0f}; }

// Return the maximum, or the sum, over all 32 lanes, in every lane.
__device__ float warp_max(float mine) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
        mine = fmaxf(mine, __shfl_xor_sync(kAllLanes, mine, distance));
    }
    return mine;
}

__device__ float warp_sum(float mine) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) mine += __shfl_xor_sync(kAllLanes, mine, distance);
    return mine;
}

// Return the state of the union of all 32 lanes' sets, in every lane. Each sum is rescaled to the common maximum.
__device__ Running warp_combine(Running mine) {
    const float maximum = warp_max(mine.maximum);
    return {maximum, warp_sum(mine.sum * __expf(mine.maximum - maximum))};
}

// Return the state of all threads' elements, in every thread of the block. Call it once per kernel: `partial` is not
// protected against reuse.
__device__ Running block_combine(Running mine) {
    __shared__ Running partial[32];
    const int lane = threadIdx.x % 32;
    mine = warp_combine(mine);
    if (lane == 0) partial[threadIdx.x / 32] = mine;
    __syncthreads();
    return warp_combine(lane < blockDim.x / 32 ? partial[lane] : nothing_seen());
}

// x, out: (rows, cols), one block per row. A tile is the part of the row that fits in registers.
template <int kWidth, typename T>
__global__ void __launch_bounds__(1024) softmax_kernel(const T* x, T* out, int cols) {
    using Access = llmk::Vector<T, kWidth>;
    const T* x_row = x + static_cast<long long>(blockIdx.x) * cols;
    T* out_row = out + static_cast<long long>(blockIdx.x) * cols;
    const int own = threadIdx.x * kWidth;
    const int step = blockDim.x * kWidth;
    const int tile = step * kInFlight;
    float held[kInFlight][kWidth];

    // Return the column where vector p of this thread begins, in the tile that begins at column `start`.
    auto column = [&](int start, int p) { return start + p * step + own; };
    auto load_tile = [&](int start) {
        Access vector[kInFlight];
#pragma unroll
        for (int p = 0; p < kInFlight; ++p) {
#pragma unroll
            for (int j = 0; j < kWidth; ++j)
                vector[p].set(j, -INFINITY);  // past the end of the row: exp(-infinity) is 0
            if (column(start, p) < cols) vector[p] = *reinterpret_cast<const Access*>(x_row + column(start, p));
        }
#pragma unroll
        for (int p = 0; p < kInFlight; ++p) {
#pragma unroll
            for (int j = 0; j < kWidth; ++j) held[p][j] = vector[p].get(j);
        }
    };

    Running mine = nothing_seen();
    int start = 0;
#pragma unroll 1
    while (true) {
        load_tile(start);
        float maximum = mine.maximum;
#pragma unroll
        for (int p = 0; p < kInFlight; ++p) {
#pragma unroll
            for (int j = 0; j < kWidth; ++j) maximum = fmaxf(maximum, held[p][j]);
        }
        mine.sum *= __expf(mine.maximum - maximum);
        mine.maximum = maximum;
#pragma unroll
        for (int p = 0; p < kInFlight; ++p) {
#pragma unroll
            for (int j = 0; j < kWidth; ++j) {
                held[p][j] = __expf(held[p][j] - maximum);
                mine.sum += held[p][j];
            }
        }
        if (start + tile >= cols) break;
        start += tile;
    }

    const Running row = block_combine(mine);
    const float scale = __expf(mine.maximum - row.maximum) / row.sum;

#pragma unroll 1
    while (true) {
#pragma unroll
        for (int p = 0; p < kInFlight; ++p) {
            Access vector;
#pragma unroll
            for (int j = 0; j < kWidth; ++j) vector.set(j, held[p][j] * scale);
            if (column(start, p) < cols) *reinterpret_cast<Access*>(out_row + column(start, p)) = vector;
        }
        if (start == 0) break;
        start -= tile;
        load_tile(start);
#pragma unroll
        for (int p = 0; p < kInFlight; ++p) {
#pragma unroll
            for (int j = 0; j < kWidth; ++j) held[p][j] = __expf(held[p][j] - mine.maximum);
        }
    }
}

template <typename T>
void launch(const T* x, T* out, int rows, int cols, cudaStream_t stream) {
    if (rows == 0 || cols == 0) return;
    constexpr int kWidth = llmk::kVectorWidth<T>;
    // Use 16-byte accesses if every row starts at a multiple of 16 bytes, and single elements otherwise.
    const bool wide = llmk::rows_are_aligned(cols, x, out);
    const int per_warp = 32 * kInFlight * (wide ? kWidth : 1);
    const int warps = cols < 32 * per_warp ? (cols + per_warp - 1) / per_warp : 32;
    if (wide) {
        softmax_kernel<kWidth><<<rows, 32 * warps, 0, stream>>>(x, out, cols);
    } else {
        softmax_kernel<1><<<rows, 32 * warps, 0, stream>>>(x, out, cols);
    }
}

extern "C" void softmax_f32(const float* x, float* out, int rows, int cols, cudaStream_t stream) {
    launch(x, out, rows, cols, stream);
}

extern "C" void softmax_f16(const __half* x, __half* out, int rows, int cols, cudaStream_t stream) {
    launch(x, out, rows, cols, stream);
}

extern "C" void softmax_bf16(const __nv_bfloat16* x, __nv_bfloat16* out, int rows, int cols, cudaStream_t stream) {
    launch(x, out, rows, cols, stream);
}
