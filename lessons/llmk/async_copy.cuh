// Asynchronous copies from global to shared memory (cp.async): they need no registers and nobody waits for them until
// cp_async_wait_all_and_sync. Day 4 derives them, with double buffering; day 8 the copies of tiles of keys and values.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

namespace llmk {

// All copies of all threads have arrived, and all threads are done with what they read before.
__device__ __forceinline__ void cp_async_wait_all_and_sync() {
    __pipeline_wait_prior(0);
    __syncthreads();
}

// cp.async through the L1 cache, which __pipeline_memcpy_async passes by: 16 bytes, of which the last `missing` become zeros.
__device__ __forceinline__ void cp_async_ca(void* to, const void* from, int missing) {
    const unsigned target = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(target), "l"(from), "r"(16 - missing)
                 : "memory");
}

// Copies 16 bytes of a row, from column `column` on. What does not exist becomes zero, and is not read. Where rows do not
// start at multiples of 16 bytes (not VECTORS), elements are copied one by one, and have arrived at once.
template <bool VECTORS, bool L1 = false, typename T>
__device__ __forceinline__ void cp_async_16(T* target, const T* source, bool row_exists, int columns_left) {
    if constexpr (VECTORS && L1) {
        cp_async_ca(target, source, row_exists && columns_left > 0 ? 0 : 16);
    } else if constexpr (VECTORS) {
        __pipeline_memcpy_async(target, source, 16, row_exists && columns_left > 0 ? 0 : 16);
    } else {
        for (int j = 0; j < 16 / static_cast<int>(sizeof(T)); ++j) {
            target[j] = row_exists && j < columns_left ? source[j] : T(0.0f);
        }
    }
}

// Walks along the columns of a matrix: copies kRows rows of it, kDepth columns at a time, with all kThreads threads of the
// block. A thread has 16 bytes of every kRowsAtOnce-th row. The addresses are made once, before the loop, and per stage
// they only move on: made anew for each copy they took more instructions than the product that they were for.
//
// In shared memory a row takes kPitch elements, 16 bytes more than it needs: eight rows start in different banks. That has a
// price: in every second row, the 32 bytes of a sector come to lie across two sectors of shared memory, and cp.async asks the
// L2 cache for them twice. L1 lets the L1 cache answer the second time, if the block's shared memory leaves it room.
template <typename T, int kRows, int kDepth, int kThreads, bool L1 = false>
struct ColumnCopier {
    static constexpr int kVector = 16 / static_cast<int>(sizeof(T));
    static constexpr int kPitch = kDepth + kVector;
    static constexpr int kLanes = kDepth / kVector;  // threads that share a row
    static constexpr int kRowsAtOnce = kThreads / kLanes;
    static constexpr int kOwnRows = kRows / kRowsAtOnce;  // of which a thread has a piece
    const T* from;                                        // of the first row
    long long step;                                       // elements from one of this thread's rows to the next
    int rows, columns;  // that are left, from the first row and this thread's column on
    int to;             // in the tile

    __device__ ColumnCopier(const T* matrix, int row0, int all_rows, int cols) {
        const int row = threadIdx.x / kLanes, col = threadIdx.x % kLanes * kVector;
        from = matrix + static_cast<long long>(row0 + row) * cols + col;
        step = static_cast<long long>(kRowsAtOnce) * cols;
        rows = all_rows - row0 - row;
        columns = cols - col;
        to = row * kPitch + col;
    }

    // Starts to copy the next kDepth columns; zeros where there are none.
    template <bool VECTORS>
    __device__ __forceinline__ void copy(T* tile) {
#pragma unroll
        for (int i = 0; i < kOwnRows; ++i) {
            cp_async_16<VECTORS, L1>(tile + place(i), from + i * step, i * kRowsAtOnce < rows, columns);
        }
        from += kDepth;
        columns -= kDepth;
    }

    // Where in the tile this thread's piece of its i-th row lies.
    __device__ int place(int i) const { return to + i * kRowsAtOnce * kPitch; }
};

// Rows of DIM elements with kVector, or 16 bytes, between them: eight rows start in different banks.
template <int DIM, int kVector>
struct Padded {
    static constexpr int kPitch = DIM + kVector;
    static __device__ __forceinline__ int place(int row, int column) { return row * kPitch + column; }
};

// Walks along the rows of a matrix with up to DIM columns: copies tiles of rows, with all kThreads threads of the block. A
// thread has 16 bytes here and there; its places are worked out once. LAYOUT says where in shared memory an element
// lies: in Padded rows, or as Swizzle (day 12) has it.
template <typename T, int DIM, int kThreads, typename LAYOUT = Padded<DIM, 16 / sizeof(T)>>
struct RowCopier {
    static constexpr int kVector = 16 / static_cast<int>(sizeof(T));
    static constexpr int kPitch = LAYOUT::kPitch;         // elements of a row
    static constexpr int kLanes = DIM % 64 == 0 ? 8 : 4;  // threads that share a row
    static constexpr int kRowsAtOnce = kThreads / kLanes;
    static constexpr int kChunks = DIM / (kLanes * kVector);  // that a thread copies of a row
    const int head_dim;                                       // columns that exist
    const bool vectors;                                       // all rows start at multiples of 16 bytes
    const int row, first_column;                              // of this thread's first 16 bytes of a tile
    const int to;                                             // their place in shared memory, in elements
    const long long start, step;  // their place in global memory, and the way to the next row of this thread

    __device__ RowCopier(int columns, bool aligned)
        : head_dim(columns),
          vectors(aligned),
          row(threadIdx.x / kLanes),
          first_column(threadIdx.x % kLanes * kVector),
          to(LAYOUT::place(row, first_column)),
          start(static_cast<long long>(row) * columns + first_column),
          step(static_cast<long long>(kRowsAtOnce) * columns) {}

    // Starts to copy ROWS rows, of which `there` exist; zeros for the others, and past the last column.
    template <int ROWS>
    __device__ __forceinline__ void copy(T* tile, const T* from, int there) const {
        if (!vectors) {
            for (int i = threadIdx.x; i < ROWS * DIM; i += kThreads) {
                const int r = i / DIM, column = i % DIM;
                tile[LAYOUT::place(r, column)] =
                    r < there && column < head_dim ? from[static_cast<long long>(r) * head_dim + column] : T(0.0f);
            }
            return;
        }
        copy_own<ROWS>(tile, from + start, there);
    }

    // The same, of rows that begin at multiples of 16 bytes. `own` is where this thread's first piece begins: a loop that moves it on
    // from tile to tile adds `start` once. WHOLE: all rows and all DIM columns exist, and nobody asks for each piece.
    template <int ROWS, bool WHOLE = false>
    __device__ __forceinline__ void copy_own(T* tile, const T* own, int there) const {
        static_assert(ROWS % kRowsAtOnce == 0 && kRowsAtOnce % 8 == 0, "every thread copies as many rows, all alike");
#pragma unroll
        for (int i = 0; i < ROWS / kRowsAtOnce; ++i) {
#pragma unroll
            for (int c = 0; c < kChunks; ++c) {
                const int r = i * kRowsAtOnce, column = c * kLanes * kVector;
                __pipeline_memcpy_async(tile + to + r * kPitch + column, own + i * step + column, 16,
                                        WHOLE || (row + r < there && first_column + column < head_dim) ? 0 : 16);
            }
        }
        __pipeline_commit();
    }
};

}  // namespace llmk
