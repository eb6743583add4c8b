// RMSNorm of each row: out = x / sqrt(mean(x^2) + eps) * weight, for f32, f16 and bf16, any width.
//
// The squares are summed in float, whatever the dtype. A thread keeps its elements in registers (64 bytes), so a row
// that fits in the block is read once and written once. A wider row is processed in tiles: forward for the sum, then,
// since the last tile is still in registers, backward to write.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "llmk/vector.cuh"

constexpr int kInFlight = 4;  // vectorized accesses in flight per thread
constexpr unsigned kAllLanes = 0xffffffffu;

// Return the sum over all 32 lanes, in every lane.
__device__ float warp_sum(float mine) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) mine += __shfl_xor_sync(kAllLanes, mine, distance);
    return mine;
}

// Return the sum over all threads, in every thread of the block. Call it once per kernel: `partial` is not protected
// against reuse.
__device__ float block_sum(float mine) {
    __shared__ float partial[32];
    const int lane = threadIdx.x % 32;
    mine = warp_sum(mine);
    if (lane == 0) partial[threadIdx.x / 32] = mine;
    __syncthreads();
    return warp_sum(lane < blockDim.x / 32 ? partial[lane] : 0.0f);
}

// x, out: (rows, cols), one block per row; weight: (cols). A tile is the part of the row that fits in registers.
template <int kWidth, typename T>
__global__ void __launch_bounds__(1024)
    rms_norm_kernel(const T* __restrict__ x, const T* __restrict__ weight, T* __restrict__ out, int cols, float eps) {
    using Access = llmk::Vector<T, kWidth>;
    const T* x_row = x + static_cast<long long>(blockIdx.x) * cols;
    T* out_row = out + static_cast<long long>(blockIdx.x) * cols;
    const int own = threadIdx.x * kWidth;
    const int step = blockDim.x * kWidth;
    const int tile = step * kInFlight;
    Access held[kInFlight];
    Access scales[kInFlight];

    // Return the column where vector p of this thread begins, in the tile that begins at column `start`.
    auto column = [&](int start, int p) { return start + p * step + own; };
    auto load = [&](const T* from, int start, Access(&to)[kInFlight]) {
#pragma unroll
        for (int p = 0; p < kInFlight; ++p) {
            to[p] = Access{};  // zeros past the end of the row, which add nothing
            if (column(start, p) < cols) to[p] = *reinterpret_cast<const Access*>(from + column(start, p));
        }
    };

    float squares = 0.0f;
    int start = 0;
#pragma unroll 1
    while (true) {
        load(x_row, start, held);
#pragma unroll
        for (int p = 0; p < kInFlight; ++p) {
#pragma unroll
            for (int j = 0; j < kWidth; ++j) squares += held[p].get(j) * held[p].get(j);
        }
        if (start + tile >= cols) break;
        start += tile;
    }

    load(weight, start, scales);  // these loads are in flight while the block reduces
    const float scale = rsqrtf(block_sum(squares) / cols + eps);

#pragma unroll 1
    while (true) {
#pragma unroll
        for (int p = 0; p < kInFlight; ++p) {
#pragma unroll
            for (int j = 0; j < kWidth; ++j) held[p].set(j, held[p].get(j) * scale * scales[p].get(j));
            if (column(start, p) < cols) *reinterpret_cast<Access*>(out_row + column(start, p)) = held[p];
        }
        if (start == 0) break;
        start -= tile;
        load(x_row, start, held);
        load(weight, start, scales);
    }
}

template <typename T>
void launch(const T* x, const T* weight, T* out, int rows, int cols, float eps, cudaStream_t stream) {
    if (rows == 0 || cols == 0) return;
    constexpr int kWidth = llmk::kVectorWidth<T>;
    // Use 16-byte accesses if every row starts at a multiple of 16 bytes, and single elements otherwise.
    const bool wide = llmk::rows_are_aligned(cols, x, weight, out);
    const int per_warp = 32 * kInFlight * (wide ? kWidth : 1);
    const int warps = cols < 32 * per_warp ? (cols + per_warp - 1) / per_warp : 32;
    if (wide) {
        rms_norm_kernel<kWidth><<<rows, 32 * warps, 0, stream>>>(x, weight, out, cols, eps);
    } else {
        rms_norm_kernel<1><<<rows, 32 * warps, 0, stream>>>(x, weight, out, cols, eps);
    }
}

extern "C" void rms_norm_f32(const float* x, const float* weight, float* out, int rows, int cols, float eps,
                             cudaStream_t stream) {
    launch(x, weight, out, rows, cols, eps, stream);
}

extern "C" void rms_norm_f16(const __half* x, const __half* weight, __half* out, int rows, int cols, float eps,
                             cudaStream_t stream) {
    launch(x, weight, out, rows, cols, eps, stream);
}

extern "C" void rms_norm_bf16(const __nv_bfloat16* x, const __nv_bfloat16* weight, __nv_bfloat16* out, int rows,
                              int cols, float eps, cudaStream_t stream) {
    launch(x, weight, out, rows, cols, eps, stream);
}
