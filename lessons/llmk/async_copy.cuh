// Asynchronous copies from global to shared memory (cp.async). They pass through no register, and the thread continues
// at once; it waits in cp_async_wait_all_and_sync. Source: PTX ISA, section "Data Movement and Conversion Instructions:
// cp.async". Day 4 derives cp.async and double buffering, day 8 the copies of key and value tiles.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

namespace llmk {

// Wait until the copies of all threads have arrived and all threads have finished reading the previous tile.
__device__ __forceinline__ void cp_async_wait_all_and_sync() {
    __pipeline_wait_prior(0);
    __syncthreads();
}

// cp.async.ca: copy 16 bytes from global memory `from` to shared memory `to` through the L1 cache, and fill the last
// `missing` bytes with zeros. __pipeline_memcpy_async compiles to cp.async.cg, which bypasses L1.
__device__ __forceinline__ void cp_async_ca(void* to, const void* from, int missing) {
    const unsigned target = static_cast<unsigned>(__cvta_generic_to_shared(to));
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(target), "l"(from), "r"(16 - missing)
                 : "memory");
}

// Copy 16 bytes of a row, starting at one of its columns. `columns_left`: columns from there to the end of the row.
// Elements outside the matrix become zeros and are not read. VECTORS: all rows start at multiples of 16 bytes; without
// it the elements are copied one by one, synchronously.
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

// A copier of kRows rows of a matrix, kDepth columns per step, with all kThreads threads of the block. Each thread
// copies 16 bytes of every kRowsAtOnce-th row. The thread computes its addresses once and advances them per step:
// recomputing them for each copy took more instructions than the mma that used the data.
//
// A row in shared memory takes kPitch elements, 16 bytes more than its data, so that eight rows start in different
// banks. The cost: every second row begins in the middle of a 32-byte sector of shared memory. A sector of global
// memory is then copied to two halves of sectors, and cp.async requests it from L2 twice. L1 = true lets the L1 cache
// serve the second request, if the block's shared memory leaves room for it.
template <typename T, int kRows, int kDepth, int kThreads, bool L1 = false>
struct ColumnCopier {
    static constexpr int kVector = 16 / static_cast<int>(sizeof(T));
    static constexpr int kPitch = kDepth + kVector;
    static constexpr int kLanes = kDepth / kVector;  // threads that share a row
    static constexpr int kRowsAtOnce = kThreads / kLanes;
    static constexpr int kOwnRows = kRows / kRowsAtOnce;  // rows of which a thread copies a piece
    const T* from;                                        // this thread's first 16 bytes in global memory
    long long step;                                       // elements from one of this thread's rows to its next row
    int rows, columns;  // numbers of rows and columns left, from this thread's first row and column on
    int to;             // this thread's offset in the tile, in elements

    __device__ ColumnCopier(const T* matrix, int row0, int all_rows, int cols) {
        const int row = threadIdx.x / kLanes, col = threadIdx.x % kLanes * kVector;
        from = matrix + static_cast<long long>(row0 + row) * cols + col;
        step = static_cast<long long>(kRowsAtOnce) * cols;
        rows = all_rows - row0 - row;
        columns = cols - col;
        to = row * kPitch + col;
    }

    // Start the copies of the next kDepth columns; columns outside the matrix become zeros.
    template <bool VECTORS>
    __device__ __forceinline__ void copy(T* tile) {
#pragma unroll
        for (int i = 0; i < kOwnRows; ++i) {
            cp_async_16<VECTORS, L1>(tile + offset(i), from + i * step, i * kRowsAtOnce < rows, columns);
        }
        from += kDepth;
        columns -= kDepth;
    }

    // Return the offset in the tile, in elements, of this thread's 16 bytes in its i-th row.
    __device__ int offset(int i) const { return to + i * kRowsAtOnce * kPitch; }
};

// Layout with DIM elements per row and kVector elements (16 bytes) of padding: eight rows start in different banks.
template <int DIM, int kVector>
struct Padded {
    static constexpr int kPitch = DIM + kVector;
    static __device__ __forceinline__ int offset(int row, int column) { return row * kPitch + column; }
};

// A copier of tiles of consecutive rows, of up to DIM columns, with all kThreads threads of the block. Each thread
// copies several 16-byte pieces and computes their offsets once. LAYOUT gives the offset of an element in shared
// memory: Padded, or Swizzle (day 12).
template <typename T, int DIM, int kThreads, typename LAYOUT = Padded<DIM, 16 / sizeof(T)>>
struct RowCopier {
    static constexpr int kVector = 16 / static_cast<int>(sizeof(T));
    static constexpr int kPitch = LAYOUT::kPitch;         // elements from row to row
    static constexpr int kLanes = DIM % 64 == 0 ? 8 : 4;  // threads that share a row
    static constexpr int kRowsAtOnce = kThreads / kLanes;
    static constexpr int kChunks = DIM / (kLanes * kVector);  // 16-byte pieces that a thread copies of each row
    const int head_dim;                                       // columns in the matrix, at most DIM
    const bool vectors;                                       // all rows start at multiples of 16 bytes
    const int row, first_column;  // row and column of this thread's first 16 bytes in a tile
    const int to;                 // offset of these bytes in shared memory, in elements
    const long long start, step;  // start: their offset in global memory; step: from there to this thread's next row

    __device__ RowCopier(int columns, bool aligned)
        : head_dim(columns),
          vectors(aligned),
          row(threadIdx.x / kLanes),
          first_column(threadIdx.x % kLanes * kVector),
          to(LAYOUT::offset(row, first_column)),
          start(static_cast<long long>(row) * columns + first_column),
          step(static_cast<long long>(kRowsAtOnce) * columns) {}

    // Start the copies of ROWS rows. Only `there` rows and head_dim columns exist; the others become zeros.
    template <int ROWS>
    __device__ __forceinline__ void copy(T* tile, const T* from, int there) const {
        if (!vectors) {
            for (int i = threadIdx.x; i < ROWS * DIM; i += kThreads) {
                const int r = i / DIM, column = i % DIM;
                tile[LAYOUT::offset(r, column)] =
                    r < there && column < head_dim ? from[static_cast<long long>(r) * head_dim + column] : T(0.0f);
            }
            return;
        }
        copy_own<ROWS>(tile, from + start, there);
    }

    // Start the copies of rows that start at multiples of 16 bytes. `own`: address of this thread's first 16 bytes, the
    // address of the tile plus `start`; a loop over tiles adds `start` only once. WHOLE: all rows and all DIM columns
    // exist, so no bounds are checked.
    template <int ROWS, bool WHOLE = false>
    __device__ __forceinline__ void copy_own(T* tile, const T* own, int there) const {
        static_assert(ROWS % kRowsAtOnce == 0 && kRowsAtOnce % 8 == 0,
                      "every thread copies the same number of rows, with the same bank offset");
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
