// Blackwell's tensor cores (tcgen05, sm_100a): one thread asks for a product of 128 rows by N columns, 16 deep, or of 256
// rows by two blocks of a cluster together. A and B come from shared memory; the accumulators stay in tensor memory, 128
// lanes of 512 columns of 32 bits, which a warp takes, and gives back before the block ends. Lane r of tensor memory is row
// r of the block's tile, and warp w reads lanes 32 (w % 4) to 32 (w % 4) + 31. All is asynchronous. Day 12 derives it.
//
// BLOCKS is 1 or 2, and the same everywhere in a kernel: how many blocks multiply together. Of two, the block of even rank
// asks; each has its own 128 rows of A, its own half of the columns of B, and the accumulators of its rows.
#pragma once

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "llmk/mbarrier.cuh"

namespace llmk {

// Where a tile lies, as tcgen05 is told: rows of 64 elements (128 bytes) along k with the 128-byte swizzle, as tma_load leaves
// them, 8 rows being 1024 bytes. The tile starts at a multiple of 1024 bytes; 16 columns further is 32 bytes further, 2 here.
// The fields are those of wgmma, but for a 1 at bit 46 and for the number of the swizzle.
__device__ __forceinline__ uint64_t make_tcgen05_smem_desc(const void* tile) {
    const uint64_t address = (shared_address(tile) & 0x3ffff) >> 4;
    return address | 1ull << 16 | static_cast<uint64_t>(1024 >> 4) << 32 | 1ull << 46 | 2ull << 61;
}

// What kind of product: its shape, both blocks' rows together, elements of type T, f32 accumulators.
template <typename T>
__host__ __device__ constexpr unsigned make_instr_desc(int rows, int columns) {
    const unsigned type = std::is_same<T, __half>::value ? 0 : 1;
    return 1u << 4 | type << 7 | type << 10 | static_cast<unsigned>(columns / 8) << 17 |
           static_cast<unsigned>(rows / 16) << 24;
}

// A whole warp takes so many columns, 32, 64, ... or 512, and their address goes to shared memory: others read it behind a
// barrier. The same number goes back, by a whole warp, when nobody uses them any more.
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

// One thread: accumulators (+)= a b, 16 deep. add 0: they are overwritten.
template <int BLOCKS>
__device__ __forceinline__ void tcgen05_mma(unsigned accumulators, uint64_t a, uint64_t b, unsigned kind,
                                            unsigned add) {
    if constexpr (BLOCKS == 1) {
        asm volatile(
            "{ .reg .pred p;\n"
            "setp.ne.b32 p, %4, 0;\n"
            "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p; }" ::"r"(accumulators),
            "l"(a), "l"(b), "r"(kind), "r"(add)
            : "memory");
    } else {
        asm volatile(
            "{ .reg .pred p;\n"
            "setp.ne.b32 p, %4, 0;\n"
            "tcgen05.mma.cta_group::2.kind::f16 [%0], %1, %2, %3, p; }" ::"r"(accumulators),
            "l"(a), "l"(b), "r"(kind), "r"(add)
            : "memory");
    }
}

// When all products that this thread has started are complete, the barrier is told; of two blocks, that of each.
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

// Neither a barrier nor an mbarrier orders these instructions by itself. Before a thread arrives, if others will use what it
// loaded from or stored to; and after a thread has waited, before it starts a product, a load or a store.
__device__ __forceinline__ void tcgen05_fence_before_thread_sync() {
    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
}
__device__ __forceinline__ void tcgen05_fence_after_thread_sync() {
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}

// The first lane that this warp reads, as a part of an address; columns are added.
__device__ __forceinline__ unsigned tmem_lane_offset() { return threadIdx.x / 32 % 4 * 32 << 16; }

// A whole warp: its lane i gets 32 columns of lane i of its quarter. They are there after tcgen05_wait_ld().
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

// tma_load (llmk/tma.cuh) for two blocks that multiply together: each has its boxes copied to its own shared memory, and
// their bytes are counted by the barrier of the block of even rank, which asks for the products.
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
