// Swizzled tiles: no padding and no bank conflicts. The 16-byte chunks of a row are permuted by XOR with the row's
// phase. Day 12 derives it.
#pragma once

#include <cuda_pipeline.h>
#include <cuda_runtime.h>

namespace llmk {

// Layout of a tile with rows of DIM 16-bit elements and no padding. ldmatrix reads the same chunk of eight rows at
// once. It has no bank conflicts only if the eight chunks lie in eight different 16-byte columns of the 32 banks.
// Rows that start in the same column have different phases, and chunk c of a row is stored at position c ^ phase.
template <int DIM>
struct Swizzle {
    static constexpr int kPitch = DIM;       // elements from row to row
    static constexpr int kChunks = DIM / 8;  // 16-byte chunks of a row
    // kRowsPerPhase rows start in different columns, and kPhases chunks are permuted: both are powers of 2, with
    // product 8.
    static constexpr int kRowsPerPhase = kChunks % 8 == 0 ? 1 : kChunks % 4 == 0 ? 2 : 4;
    static constexpr int kPhases = 8 / kRowsPerPhase;
    static_assert(DIM % 16 == 0, "rows are made of pairs of chunks");

    static __device__ __forceinline__ int phase(int row) { return row / kRowsPerPhase % kPhases; }

    // Return the offset of element (row, column), in elements.
    static __device__ __forceinline__ int offset(int row, int column) { return row * DIM + (column ^ phase(row) * 8); }

    // Return the offset of element (row, column + 16 * steps), for column < 16. The low bits of `steps` are XORed, the
    // others are added; with `steps` known at compile time this costs one instruction.
    static __device__ __forceinline__ int offset(int row, int column, int steps) {
        constexpr int kSteps = kPhases / 2;
        return row * DIM + ((column ^ phase(row) * 8) ^ steps % kSteps * 16) + steps / kSteps * kSteps * 16;
    }

    // Return the address of the element that is 16 * steps columns after the element at `address` (shared memory, in
    // bytes), if the tile starts at a multiple of 128 bytes. The address of each step is one XOR away from the first,
    // for every row.
    static __device__ __forceinline__ unsigned advance(unsigned address, int steps) {
        constexpr int kSteps = kPhases / 2;
        return (address ^ steps % kSteps * 32) + steps / kSteps * kSteps * 32;
    }
};

// A copier of tiles of rows to shared memory in the swizzled layout (cp.async), with all kThreads threads of the block.
// Each thread computes its offsets once.
template <typename T, int DIM, int kThreads>
struct SwizzledCopier {
    static constexpr int kLanes = DIM % 64 == 0 ? 8 : DIM % 32 == 0 ? 4 : 2;  // threads that share a row
    static constexpr int kRowsAtOnce = kThreads / kLanes;
    static constexpr int kEach = DIM / (8 * kLanes);  // chunks that a thread copies of each row
    static_assert(kRowsAtOnce % 8 == 0, "all rows of a thread have the same phase");
    static_assert(kLanes == Swizzle<DIM>::kPhases, "chunks that are kLanes apart have the same XOR");
    const int row, column;        // row and column of this thread's first chunk of a tile
    const int to;                 // offset of that chunk in shared memory, in elements
    const long long start, step;  // start: its offset in global memory; step: from there to this thread's next row

    // stride: elements from row to row in global memory
    __device__ explicit SwizzledCopier(long long stride)
        : row(threadIdx.x / kLanes),
          column(threadIdx.x % kLanes * 8),
          to(Swizzle<DIM>::offset(row, column)),
          start(row * stride + column),
          step(kRowsAtOnce * stride) {}

    // Start the copies of ROWS rows. Only `there` rows exist; the others become zeros and are not read.
    template <int ROWS>
    __device__ __forceinline__ void copy(T* tile, const T* from, int there) const {
        static_assert(ROWS % kRowsAtOnce == 0, "every thread copies the same number of rows");
        from += start;
#pragma unroll
        for (int i = 0; i < ROWS / kRowsAtOnce; ++i) {
#pragma unroll
            for (int c = 0; c < kEach; ++c) {
                __pipeline_memcpy_async(tile + to + i * kRowsAtOnce * DIM + c * kLanes * 8,
                                        from + i * step + c * kLanes * 8, 16, row + i * kRowsAtOnce < there ? 0 : 16);
            }
        }
    }
};

}  // namespace llmk
