// Tensor memory accelerator (TMA, Hopper): one thread starts the copy of a box of a tensor to shared memory and
// continues. The host encodes a tensor map: where the tensor lies and how a box is laid out. Elements of a box outside
// the tensor are loaded as zeros and not stored. Source: PTX ISA, section "Data Movement and Conversion Instructions:
// cp.async.bulk.tensor"; CUDA Driver API, "Tensor Map Object Management". Day 13 derives it.
#pragma once

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "llmk/mbarrier.cuh"

namespace llmk {

// Encode the tensor map of `matrices` matrices [rows, columns] of 16-bit elements. row_stride and matrix_stride:
// elements from row to row and from matrix to matrix, multiples of 8. `tensor` is a multiple of 16 bytes. A box has 64
// columns (128 bytes), `box_rows` rows and `box_matrices` matrices. In shared memory it starts at a multiple of 1,024
// bytes and has the 128-byte swizzle: 16-byte chunk i of row r is stored at position i ^ (r % 8), so that the same
// chunk of eight rows lies in different banks.
template <typename T>
cudaError_t make_tensor_map(CUtensorMap* map, const T* tensor, long long columns, long long rows, long long matrices,
                            long long row_stride, long long matrix_stride, int box_rows, int box_matrices = 1) {
    static_assert(sizeof(T) == 2, "elements of 16 bits");
    // Look the driver function up by name, so that the kernel needs no link with libcuda.
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
        static_cast<cuuint64_t>(matrix_stride) * sizeof(T)};  // strides in bytes; columns are contiguous
    const cuuint32_t box[3] = {64, static_cast<cuuint32_t>(box_rows), static_cast<cuuint32_t>(box_matrices)};
    const cuuint32_t every[3] = {1, 1, 1};
    const CUresult result = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function)(
        map, std::is_same<T, __half>::value ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 3,
        const_cast<T*>(tensor), sizes, strides, box, every, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
        CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return result == CUDA_SUCCESS ? cudaSuccess : cudaErrorInvalidValue;
}

// cp.async.bulk.tensor.3d: start copying the box at (column, row, matrix) to shared memory `to`. `barrier` counts its
// bytes as they arrive (complete_tx).
__device__ __forceinline__ void tma_load(void* to, const CUtensorMap* map, uint64_t* barrier, int column, int row,
                                         int matrix) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];" ::
            "r"(shared_address(to)),
        "l"(map), "r"(shared_address(barrier)), "r"(column), "r"(row), "r"(matrix)
        : "memory");
}

// cp.async.bulk.tensor.3d.multicast::cluster: tma_load for every block of the cluster whose bit is set in `blocks`. The
// box arrives at the same shared-memory offset in each, and the mbarrier at the same offset counts its bytes.
__device__ __forceinline__ void tma_load_multicast(void* to, const CUtensorMap* map, uint64_t* barrier, int column,
                                                   int row, int matrix, unsigned short blocks) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
        "[%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(shared_address(to)),
        "l"(map), "r"(shared_address(barrier)), "r"(column), "r"(row), "r"(matrix), "h"(blocks)
        : "memory");
}

// cp.async.bulk.tensor.3d.global: start storing a box from shared memory `from`. cp_async_bulk_commit_group() closes a
// group of such copies.
__device__ __forceinline__ void tma_store(const CUtensorMap* map, const void* from, int column, int row, int matrix) {
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(map),
                 "r"(shared_address(from)), "r"(column), "r"(row), "r"(matrix)
                 : "memory");
}
__device__ __forceinline__ void cp_async_bulk_commit_group() {
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// cp.async.bulk.wait_group.read: wait until at most PENDING of the most recent groups of this thread still read shared
// memory. The sources of all earlier groups may then be overwritten.
template <int PENDING>
__device__ __forceinline__ void cp_async_bulk_wait_group_read() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(PENDING) : "memory");
}

}  // namespace llmk
