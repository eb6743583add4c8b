// The copy engine (TMA, Hopper): one thread asks for a whole box of a tensor, which arrives in shared memory while
// everybody goes on. A tensor map, made on the host, says where the tensor lies and how a box is laid out. What a box
// has beyond the tensor's edges arrives as zeros, and is not stored. Day 12 derives it.
#pragma once

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "llmk/mbarrier.cuh"

namespace llmk {

// A matrix, or a stack of them, of 16-bit elements. `sizes`: columns, rows, matrices, elements of each; `strides`: elements
// from a row to the next and from a matrix to the next, multiples of 8; the tensor starts at a multiple of 16 bytes. A
// box has 64 columns (128 bytes), `box_rows` rows of `box_matrices` matrices; in shared memory it starts at a multiple of
// 1024 bytes, and of each row of 128 bytes the 16-byte pieces are permuted: piece i of row r lies where piece i ^ (r % 8)
// would (the 128-byte swizzle), so that eight rows of one piece lie in different banks.
template <typename T>
cudaError_t make_tensor_map(CUtensorMap* map, const T* tensor, long long columns, long long rows, long long matrices,
                            long long row_stride, long long matrix_stride, int box_rows, int box_matrices = 1) {
    static_assert(sizeof(T) == 2, "elements of 16 bits");
    // The driver's function, asked for by name: so nothing needs to be linked with the driver's library.
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found;
    const cudaError_t error =
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found);
    if (error != cudaSuccess) return error;
    if (found != cudaDriverEntryPointSuccess) return cudaErrorNotSupported;

    const cuuint64_t sizes[3] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows),
                                 static_cast<cuuint64_t>(matrices)};
    const cuuint64_t strides[2] = {
        static_cast<cuuint64_t>(row_stride) * sizeof(T),
        static_cast<cuuint64_t>(matrix_stride) * sizeof(T)};  // bytes; columns lie side by side
    const cuuint32_t box[3] = {64, static_cast<cuuint32_t>(box_rows), static_cast<cuuint32_t>(box_matrices)};
    const cuuint32_t every[3] = {1, 1, 1};
    const CUresult result = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function)(
        map, std::is_same<T, __half>::value ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 3,
        const_cast<T*>(tensor), sizes, strides, box, every, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
        CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return result == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
}

// Starts to copy the box that begins at (column, row, matrix); its bytes are counted by `barrier` as they arrive.
__device__ __forceinline__ void tma_load(void* to, const CUtensorMap* map, uint64_t* barrier, int column, int row,
                                         int matrix) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];" ::
            "r"(shared_address(to)),
        "l"(map), "r"(shared_address(barrier)), "r"(column), "r"(row), "r"(matrix)
        : "memory");
}

// The same for each block of the cluster whose bit is set in `blocks`: it arrives at the same place of their shared
// memories, and is counted by the barrier there.
__device__ __forceinline__ void tma_load_multicast(void* to, const CUtensorMap* map, uint64_t* barrier, int column,
                                                   int row, int matrix, unsigned short blocks) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(shared_address(to)),
        "l"(map), "r"(shared_address(barrier)), "r"(column), "r"(row), "r"(matrix), "h"(blocks)
        : "memory");
}

// Starts to store a box from shared memory. cp_async_bulk_commit_group() closes a group of such copies.
__device__ __forceinline__ void tma_store(const CUtensorMap* map, const void* from, int column, int row, int matrix) {
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(map),
                 "r"(shared_address(from)), "r"(column), "r"(row), "r"(matrix)
                 : "memory");
}
__device__ __forceinline__ void cp_async_bulk_commit_group() {
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Until the groups of this thread, but the youngest PENDING, have been read from shared memory: it may be written again.
template <int PENDING>
__device__ __forceinline__ void cp_async_bulk_wait_group_read() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(PENDING) : "memory");
}

}  // namespace llmk
