// LayerNorm of each row: out = (x - mean) / sqrt(variance + eps) * weight + bias, for f32, f16 and bf16, any width.
//
// With a large mean, mean(x^2) - mean(x)^2 is the small difference of two large numbers. Here every set of elements has
// a count, a mean and a sum of squared deviations from that mean, and none of these is large. Chan's formula combines
// the sets of lanes, then of warps (Welford's update is the case of a single element). A row that fits in the block's
// registers is read once and written once. A wider row is processed in tiles: forward for the moments, then, since the
// last tile is still in registers, backward to write.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "llmk/vector.cuh"

constexpr int kInFlight = 4;  // vectorized accesses in flight per thread
constexpr unsigned kAllLanes = 0xffffffffu;

// The moments of a set of elements. The variance is deviations / count.
struct Moments {
    float count;
    float mean;
    float deviations;  // the sum of (element - mean)^2
};

// Return the sum over all 32 lanes, in every lane.
__device__ float warp_sum(float mine) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) mine += __shfl_xor_sync(kAllLanes, mine, distance);
    return mine;
}

// Return the moments of the union of all 32 lanes' sets, in every lane. Each set's deviations are from its own mean;
// from the common mean they are larger by count * (own mean - common mean)^2. Lane 0 has no elements only if no lane
// has.
__device__ Moments warp_combine(Moments mine) {
    const float origin = __shfl_sync(kAllLanes, mine.mean, 0);  // close to all means: the differences are small
    const float count = warp_sum(mine.count);
    const float mean = origin + warp_sum(mine.count * (mine.mean - origin)) / fmaxf(count, 1.0f);
    const float apart = mine.mean - mean;
    return {count, mean, warp_sum(mine.deviations + mine.count * apart * apart)};
}

// Return the moments of all threads' elements, in every thread of the block. Call it once per kernel: `partial` is not
// protected against reuse.
__device__ Moments block_combine(Moments mine) {
    __shared__ Moments partial[32];
    const int lane = threadIdx.x % 32;
    mine = warp_combine(mine);
    if (lane == 0) partial[threadIdx.x / 32] = mine;
    __syncthreads();
    return warp_combine(lane < blockDim.x / 32 ? partial[lane] : Moments{0.0f, 0.0f, 0.0f});
}

// x, out: (rows, cols), one block per row; weight, bias: (cols). A tile is the part of the row that fits in registers.
template <int kWidth, typename T>
__global__ void __launch_bounds__(1024)
    layer_norm_kernel(const T* __restrict__ x, const T* __restrict__ weight, const T* __restrict__ bias,
                      T* __restrict__ out, int cols, float eps) {
    using Access = llmk::Vector<T, kWidth>;
    const T* x_row = x + static_cast<long long>(blockIdx.x) * cols;
    T* out_row = out + static_cast<long long>(blockIdx.x) * cols;
    const int own = threadIdx.x * kWidth;
    const int step = blockDim.x * kWidth;
    const int tile = step * kInFlight;
    Access held[kInFlight];
    Access scales[kInFlight];  // weight (scales) and bias (shifts) at the same columns
    Access shifts[kInFlight];

    // Return the column where vector p of this thread begins, in the tile that begins at column `start`.
    auto column = [&](int start, int p) { return start + p * step + own; };
    auto load = [&](const T* from, int start, Access(&to)[kInFlight]) {
#pragma unroll
        for (int p = 0; p < kInFlight; ++p) {
            to[p] = Access{};
            if (column(start, p) < cols) to[p] = *reinterpret_cast<const Access*>(from + column(start, p));
        }
    };

    // Sum the distances from `origin`, an element of this thread. Even if the mean is large, they are no larger than
    // the spread of the row, so the subtraction below loses little precision.
    float origin = 0.0f;
    float count = 0.0f;
    float sum = 0.0f;
    float squares = 0.0f;
    int start = 0;
#pragma unroll 1
    while (true) {
        load(x_row, start, held);
        if (start == 0) origin = held[0].get(0);
#pragma unroll
        for (int p = 0; p < kInFlight; ++p) {
            if (column(start, p) < cols) {
                count += kWidth;
#pragma unroll
                for (int j = 0; j < kWidth; ++j) {
                    const float distance = held[p].get(j) - origin;
                    sum += distance;
                    squares += distance * distance;
                }
            }
        }
        if (start + tile >= cols) break;
        start += tile;
    }
    const float shift = sum / fmaxf(count, 1.0f);
    const Moments mine{count, origin + shift, squares - sum * shift};

    const Moments row = block_combine(mine);
    const float scale = rsqrtf(row.deviations / row.count + eps);

#pragma unroll 1
    while (true) {
        load(weight, start, scales);
        load(bias, start, shifts);
#pragma unroll
        for (int p = 0; p < kInFlight; ++p) {
#pragma unroll
            for (int j = 0; j < kWidth; ++j) {
                const float normalized = (held[p].get(j) - row.mean) * scale;
                held[p].set(j, normalized * scales[p].get(j) + shifts[p].get(j));
            }
            if (column(start, p) < cols) *reinterpret_cast<Access*>(out_row + column(start, p)) = held[p];
        }
        if (start == 0) break;
        start -= tile;
        load(x_row, start, held);
    }
}

template <typename T>
void launch(const T* x, const T* weight, const T* bias, T* out, int rows, int cols, float eps, cudaStream_t stream) {
    if (rows == 0 || cols == 0) return;
    constexpr int kWidth = llmk::kVectorWidth<T>;
    // Use 16-byte accesses if every row starts at a multiple of 16 bytes, and single elements otherwise.
    const bool wide = llmk::rows_are_aligned(cols, x, weight, bias, out);
    const int per_warp = 32 * kInFlight * (wide ? kWidth : 1);
    const int warps = cols < 32 * per_warp ? (cols + per_warp - 1) / per_warp : 32;
    if (wide) {
        layer_norm_kernel<kWidth><<<rows, 32 * warps, 0, stream>>>(x, weight, bias, out, cols, eps);
    } else {
        layer_norm_kernel<1><<<rows, 32 * warps, 0, stream>>>(x, weight, bias, out, cols, eps);
    }
}

extern "C" void layer_norm_f32(const float* x, const float* weight, const float* bias, float* out, int rows, int cols,
                               float eps, cudaStream_t stream) {
    launch(x, weight, bias, out, rows, cols, eps, stream);
}

extern "C" void layer_norm_f16(const __half* x, const __half* weight, const __half* bias, __half* out, int rows,
                               int cols, float eps, cudaStream_t stream) {
    launch(x, weight, bias, out, rows, cols, eps, stream);
}

extern "C" void layer_norm_bf16(const __nv_bfloat16* x, const __nv_bfloat16* weight, const __nv_bfloat16* bias,
                                __nv_bfloat16* out, int rows, int cols, float eps, cudaStream_t stream) {
    launch(x, weight, bias, out, rows, cols, eps, stream);
}
