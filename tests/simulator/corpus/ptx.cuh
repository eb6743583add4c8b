// PTX instructions of Hopper for the kernels of the corpus, each in a function that is named after it. A finding about
// an instruction is reported at the line of the call.
#pragma once

#include <cudaTypedefs.h>
#include <cuda_runtime.h>

#include <cstdint>

namespace ptx {

__device__ __forceinline__ unsigned address_of(const void* shared) { return (unsigned)__cvta_generic_to_shared(shared); }

__device__ __forceinline__ void mbarrier_init(void* barrier, unsigned count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address_of(barrier)), "r"(count));
}
__device__ __forceinline__ void mbarrier_arrive(void* barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address_of(barrier)) : "memory");
}
__device__ __forceinline__ void mbarrier_arrive_expect_tx(void* barrier, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address_of(barrier)), "r"(bytes) : "memory");
}
__device__ __forceinline__ void mbarrier_wait_parity(void* barrier, unsigned parity) {
    asm volatile(
        "{ .reg .pred p; WAIT: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1; @p bra DONE; bra WAIT; DONE: }" ::"r"(address_of(barrier)),
        "r"(parity)
        : "memory");
}

// Bulk copies and additions: a load's bytes arrive at an mbarrier, a store or an addition is a group of its own.
__device__ __forceinline__ void bulk_load(void* shared, const void* global, unsigned bytes, void* barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(address_of(shared)), "l"(global),
                 "r"(bytes), "r"(address_of(barrier))
                 : "memory");
}
__device__ __forceinline__ void bulk_store(void* global, const void* shared, unsigned bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(global), "r"(address_of(shared)), "r"(bytes) : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
__device__ __forceinline__ void bulk_add(float* global, const float* shared, unsigned bytes) {
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(global), "r"(address_of(shared)), "r"(bytes)
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

// Return the tensor map of a matrix with rows of 32 floats, in boxes of 8 rows.
inline CUtensorMap make_tensor_map(const float* matrix, int rows) {
    CUtensorMap map = {};
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult found;
    cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault, &found);
    cuuint64_t size[] = {32, (cuuint64_t)rows}, stride[] = {128};
    cuuint32_t box[] = {32, 8}, step[] = {1, 1};
    ((PFN_cuTensorMapEncodeTiled_v12000)entry)(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, (void*)matrix, size, stride, box, step,
                                               CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                                               CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return map;
}

// Initialize an mbarrier for one arrival, announce `bytes`, and start copying the box at `row`.
__device__ __forceinline__ void tensor_load(void* tile, const CUtensorMap* map, int row, void* full, unsigned bytes) {
    mbarrier_init(full, 1);
    mbarrier_arrive_expect_tx(full, bytes);
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(address_of(tile)),
                 "l"(map), "r"(0), "r"(row), "r"(address_of(full))
                 : "memory");
}
__device__ __forceinline__ void tensor_store(const CUtensorMap* map, int row, const void* tile) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map), "r"(0), "r"(row), "r"(address_of(tile))
                 : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}

__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wgmma_commit_group() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wgmma_wait_group() { asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory"); }

// Return a matrix descriptor (K-major, no swizzle). The two core matrices of a group of 8 rows are 128 bytes apart;
// groups of 8 rows are 256 bytes apart.
__device__ __forceinline__ uint64_t make_smem_desc(const void* tile) { return address_of(tile) >> 4 | 128ull >> 4 << 16 | 256ull >> 4 << 32; }
// Compute d [64, 8] += a [64, 16] * b [16, 8]; a and b are matrix descriptors.
__device__ __forceinline__ void wgmma(float (&d)[4], uint64_t a, uint64_t b) {
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "l"(a), "l"(b)
                 : "memory");
}
__device__ __forceinline__ void wgmma(float (&d)[4], const void* a, const void* b) { wgmma(d, make_smem_desc(a), make_smem_desc(b)); }

// Fill the operands of a wgmma with bf16 numbers near 1. The block has 128 threads.
__device__ __forceinline__ void fill_operands(unsigned (&a)[512], unsigned (&b)[64], const float* x) {
    for (int i = threadIdx.x; i < 512; i += 128) a[i] = 0x3f803f80u + (unsigned)x[i];
    if (threadIdx.x < 64) b[threadIdx.x] = 0x3f803f80u + (unsigned)x[threadIdx.x];
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
}

}  // namespace ptx
