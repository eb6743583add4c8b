// Blackwell's tensor cores (tcgen05, sm_100a). One thread issues an mma of 128 rows by N columns, 16 deep, or one of
// 256 rows for two blocks of a cluster. A and B are in shared memory, the accumulators in tensor memory: 128 lanes by
// 512 columns of 32 bits. A warp allocates columns of it and deallocates them before the block ends. Lane r of tensor
// memory is row r of the block's tile; warp w can read lanes 32 (w % 4) to 32 (w % 4) + 31. All of it is asynchronous.
// Source: PTX ISA, section "TensorCore 5th Generation Family Instructions". Day 14 derives it.
//
// BLOCKS (cta_group) is 1 or 2, the same everywhere in a kernel: the number of blocks that multiply together. Of two,
// the block of even rank issues the mma. Each block holds its own 128 rows of A, its half of the columns of B, and the
// accumulators of its rows.
#pragma once

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "llmk/mbarrier.cuh"

namespace llmk {

// Return the shared-memory descriptor of a K-major tile: rows of 64 elements (128 bytes) with the 128-byte swizzle, as
// tma_load writes them; 8 rows take 1,024 bytes, and the tile starts at a multiple of 1,024 bytes. To advance by 16
// columns, add 2 (units of 16 bytes). The fields are those of wgmma, except for the version, 1 at bit 46, and the code
// of the swizzle mode.
__device__ __forceinline__ uint64_t make_tcgen05_smem_desc(const void* tile) {
    const uint64_t address = (shared_address(tile) & 0x3ffff) >> 4;
    return address | 1ull << 16 | static_cast<uint64_t>(1024 >> 4) << 32 | 1ull << 46 | 2ull << 61;
}

// Return the instruction descriptor of kind::f16: an mma of `rows` rows (of both blocks together) and `columns`
// columns, with operands of type T and f32 accumulators.
template <typename T>
__host__ __device__ constexpr unsigned make_instr_desc(int rows, int columns) {
    const unsigned type = std::is_same<T, __half>::value ? 0 : 1;
    return 1u << 4 | type << 7 | type << 10 | static_cast<unsigned>(columns / 8) << 17 |
           static_cast<unsigned>(rows / 16) << 24;
}

// tcgen05.alloc: allocate `columns` columns of tensor memory (a power of two, 32 to 512), and write their address to
// shared memory `address`. One whole warp executes it; others read the address after a barrier. tcgen05.dealloc: one
// whole warp frees the same number of columns when no warp uses them.
template <int BLOCKS>
__device__ __forceinline__ void tcgen05_alloc(unsigned* address, unsigned columns) {
    if constexpr (BLOCKS == 1) {
        asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(shared_address(address)),
                     "r"(columns)
                     : "memory");
        asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
    } else {
        asm volatile("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(shared_address(address)),
                     "r"(columns)
                     : "memory");
        asm volatile("tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;");
    }
}
template <int BLOCKS>
__device__ __forceinline__ void tcgen05_dealloc(unsigned address, unsigned columns) {
    if constexpr (BLOCKS == 1)
        asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(address), "r"(columns));
    else
        asm volatile("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, %1;" ::"r"(address), "r"(columns));
}

// tcgen05.mma.kind::f16: accumulators (+)= a b, 16 deep; add = 0 overwrites them. One thread issues it. `accumulators`:
// an address in tensor memory; a and b: descriptors from make_tcgen05_smem_desc; instr_desc: from make_instr_desc.
template <int BLOCKS>
__device__ __forceinline__ void tcgen05_mma(unsigned accumulators, uint64_t a, uint64_t b, unsigned instr_desc,
                                            unsigned add) {
    if constexpr (BLOCKS == 1) {
        asm volatile(
            "{ .reg .pred p;\n"
            "setp.ne.b32 p, %4, 0;\n"
            "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p; }" ::"r"(accumulators),
            "l"(a), "l"(b), "r"(instr_desc), "r"(add)
            : "memory");
    } else {
        asm volatile(
            "{ .reg .pred p;\n"
            "setp.ne.b32 p, %4, 0;\n"
            "tcgen05.mma.cta_group::2.kind::f16 [%0], %1, %2, %3, p; }" ::"r"(accumulators),
            "l"(a), "l"(b), "r"(instr_desc), "r"(add)
            : "memory");
    }
}

// tcgen05.commit: arrive at `barrier` when all mma instructions that this thread has issued are complete. With two
// blocks it arrives at the barrier at the same offset in both.
template <int BLOCKS>
__device__ __forceinline__ void tcgen05_commit(uint64_t* barrier) {
    if constexpr (BLOCKS == 1) {
        asm volatile(
            "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(shared_address(barrier))
            : "memory");
    } else {
        const unsigned short both = 3;
        asm volatile(
            "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;" ::"r"(
                shared_address(barrier)),
            "h"(both)
            : "memory");
    }
}

// tcgen05.fence: neither a barrier nor an mbarrier orders tcgen05 instructions by itself. before_thread_sync: before an
// arrival, if other threads will use what this thread loaded or stored. after_thread_sync: after a wait, before this
// thread issues an mma, a load or a store.
__device__ __forceinline__ void tcgen05_fence_before_thread_sync() {
    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
}
__device__ __forceinline__ void tcgen05_fence_after_thread_sync() {
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}

// Return the first lane that this warp can read, as the lane field of a tensor-memory address. The caller adds the
// column.
__device__ __forceinline__ unsigned tmem_lane_offset() { return threadIdx.x / 32 % 4 * 32 << 16; }

// tcgen05.ld.32x32b.x32: load 32 columns; lane i of the warp receives those of lane i of its quarter. The whole warp
// executes it. The registers are valid after tcgen05_wait_ld().
__device__ __forceinline__ void tcgen05_ld(float (&values)[32], unsigned address) {
    asm volatile(
        "tcgen05.ld.sync.aligned.32x32b.x32.b32 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, [%32];"
        : "=f"(values[0]), "=f"(values[1]), "=f"(values[2]), "=f"(values[3]), "=f"(values[4]), "=f"(values[5]),
          "=f"(values[6]), "=f"(values[7]), "=f"(values[8]), "=f"(values[9]), "=f"(values[10]), "=f"(values[11]),
          "=f"(values[12]), "=f"(values[13]), "=f"(values[14]), "=f"(values[15]), "=f"(values[16]), "=f"(values[17]),
          "=f"(values[18]), "=f"(values[19]), "=f"(values[20]), "=f"(values[21]), "=f"(values[22]), "=f"(values[23]),
          "=f"(values[24]), "=f"(values[25]), "=f"(values[26]), "=f"(values[27]), "=f"(values[28]), "=f"(values[29]),
          "=f"(values[30]), "=f"(values[31])
        : "r"(address));
}
__device__ __forceinline__ void tcgen05_wait_ld() { asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory"); }

// cp.async.bulk.tensor.3d with cta_group::2: tma_load for two blocks that multiply together. Each block's box goes to
// its own shared memory; the mbarrier of the block of even rank, which issues the mma, counts the bytes. `even_block`:
// its rank.
__device__ __forceinline__ void tma_load_2cta(void* to, const CUtensorMap* map, uint64_t* barrier, int column, int row,
                                              int matrix, unsigned even_block) {
    unsigned there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(shared_address(barrier)), "r"(even_block));
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.cta_group::2 "
        "[%0], [%1, {%3, %4, %5}], [%2];" ::"r"(shared_address(to)),
        "l"(map), "r"(there), "r"(column), "r"(row), "r"(matrix)
        : "memory");
}

}  // namespace llmk
