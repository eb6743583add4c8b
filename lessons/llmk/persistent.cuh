// Day 16: parts of a persistent kernel whose blocks compute tiles of matrices and synchronize through counters in
// global memory.
#pragma once

#include <cuda_runtime.h>

#include "llmk/reduce.cuh"

namespace llmk {

// Load the counter with acquire semantics. After a load that returns a value written by red_release_add, this thread
// sees everything that was written before that addition, and before the earlier additions to the counter.
__device__ __forceinline__ unsigned ld_acquire(const unsigned* counter) {
    unsigned value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(counter) : "memory");
    return value;
}

// Add to the counter with release semantics. A thread whose ld_acquire reads the sum sees what this thread wrote before
// the addition, and what other threads of the block wrote before the last __syncthreads().
__device__ __forceinline__ void red_release_add(unsigned* counter, unsigned value) {
    asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(counter), "r"(value) : "memory");
}

constexpr int kTileThreads = 256;
constexpr int kTileRows = 4;      // a band
constexpr int kTileColumns = 32;  // columns of a tile: rows of the weight matrix

// Compute a tile of out = activation(in weight^T) for a band of rows: columns first ... first + 31. All threads of the
// block call it; each of its 8 warps computes every eighth column.
//
//   in: [rows, depth]     weight: [columns, depth]     out: [rows, columns]     rows <= kTileRows
template <bool kSilu>
__device__ __forceinline__ void compute_tile(const float* in, const float* weight, float* out, int rows, int first,
                                             int columns, int depth) {
    constexpr int kWarps = kTileThreads / 32, kOfWarp = kTileColumns / kWarps, kPart = 256;
    __shared__ float part[kTileRows][kPart];  // the next elements of each row
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    float sums[kTileRows][kOfWarp] = {};
    for (int begin = 0; begin < depth; begin += kPart) {
        const int count = min(kPart, depth - begin);
        for (int i = threadIdx.x; i < kTileRows * kPart; i += kTileThreads) {
            const int row = i / kPart, k = i % kPart;
            part[row][k] = row < rows && k < count ? in[static_cast<size_t>(row) * depth + begin + k] : 0.0f;
        }
        __syncthreads();
#pragma unroll
        for (int c = 0; c < kOfWarp; ++c) {
            const int column = first + c * kWarps + warp;
            if (column >= columns) continue;
            for (int k = lane; k < count; k += 32) {
                const float factor = weight[static_cast<size_t>(column) * depth + begin + k];
#pragma unroll
                for (int r = 0; r < kTileRows; ++r) sums[r][c] += factor * part[r][k];
            }
        }
        __syncthreads();  // all warps have read this part
    }
#pragma unroll
    for (int c = 0; c < kOfWarp; ++c) {
#pragma unroll
        for (int r = 0; r < kTileRows; ++r) {
            const int column = first + c * kWarps + warp;
            const float sum = warp_sum(sums[r][c]);
            if (lane == 0 && r < rows && column < columns) {
                out[static_cast<size_t>(r) * columns + column] = kSilu ? sum / (1.0f + expf(-sum)) : sum;
            }
        }
    }
}

}  // namespace llmk
