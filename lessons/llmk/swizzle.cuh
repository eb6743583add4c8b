// Tiles without padding and without bank conflicts: 16-byte chunks of a row change places by xor with the row's number.
// Day 12 derives it.
#pragma once

#include <cuda_pipeline.h>
#include <cuda_runtime.h>

namespace llmk {

// Places in a tile of rows of DIM 16-bit elements, one behind the other in shared memory. ldmatrix reads the same chunk of
// eight rows at once, and these must lie in the eight different 16-byte columns that the 32 banks make. Where rows lie in
// the same column, they get different numbers, and chunk c of a row is kept where chunk (c xor number) would be.
template <int DIM>
struct Swizzle {
    static constexpr int kPitch = DIM;       // elements from a row to the next
    static constexpr int kChunks = DIM / 8;  // of 16 bytes, in a row
    // Rows that begin in different columns, and chunks that change places with each other: a power of 2 each, together 8.
    static constexpr int kSpread = kChunks % 8 == 0 ? 1 : kChunks % 4 == 0 ? 2 : 4;
    static constexpr int kExchanged = 8 / kSpread;
    static_assert(DIM % 16 == 0, "rows are made of pairs of chunks");

    static __device__ __forceinline__ int number(int row) { return row / kSpread % kExchanged; }

    // Where element `column` of a row is, in elements.
    static __device__ __forceinline__ int place(int row, int column) { return row * DIM + (column ^ number(row) * 8); }

    // The same 16 `steps` further along the row, for a column in its first 16. The lower bits of the steps go through the
    // xor, the others are added, and cost nothing where the number of steps is known to the compiler.
    static __device__ __forceinline__ int place(int row, int column, int steps) {
        constexpr int kSteps = kExchanged / 2;
        return row * DIM + ((column ^ number(row) * 8) ^ steps % kSteps * 16) + steps / kSteps * kSteps * 16;
    }

    // The same for an address in shared memory (in bytes) of such a place, if the tile begins at a multiple of 128 bytes: an
    // address for each step is then one xor away from the first, whatever the row.
    static __device__ __forceinline__ unsigned further(unsigned address, int steps) {
        constexpr int kSteps = kExchanged / 2;
        return (address ^ steps % kSteps * 32) + steps / kSteps * kSteps * 32;
    }
};

// Copies tiles of rows to shared memory with all kThreads threads of a block (cp.async), chunks in their swizzled places. A
// thread's places are worked out once.
template <typename T, int DIM, int kThreads>
struct SwizzledCopier {
    static constexpr int kLanes = DIM % 64 == 0 ? 8 : DIM % 32 == 0 ? 4 : 2;  // threads that share a row
    static constexpr int kRowsAtOnce = kThreads / kLanes;
    static constexpr int kEach = DIM / (8 * kLanes);  // chunks that a thread copies of a row
    static_assert(kRowsAtOnce % 8 == 0, "all rows of a thread have the same number");
    static_assert(kLanes == Swizzle<DIM>::kExchanged, "and kLanes chunks further on nothing else changes");
    const int row, column;        // of this thread's first chunk of a tile
    const int to;                 // its place in shared memory, in elements
    const long long start, step;  // its place in global memory, and the way to the next row of this thread

    // stride: elements from a row to the next in global memory
    __device__ explicit SwizzledCopier(long long stride)
        : row(threadIdx.x / kLanes),
          column(threadIdx.x % kLanes * 8),
          to(Swizzle<DIM>::place(row, column)),
          start(row * stride + column),
          step(kRowsAtOnce * stride) {}

    // Starts to copy ROWS rows, of which `there` exist; zeros for the others, which are not read.
    template <int ROWS>
    __device__ __forceinline__ void copy(T* tile, const T* from, int there) const {
        static_assert(ROWS % kRowsAtOnce == 0, "every thread copies as many rows");
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
