// Block-scaled tcgen05.mma (sm_100a): elements of 4 bits, with a scale factor for each 16 of k. The tensor core
// multiplies by the scale factors itself, and reads them from tensor memory.
//
// An mma of kind::mxf4nvf4 is 64 deep. A row of A then has 64 e2m1 (32 bytes) and four e4m3 scales, which are one word
// of tensor memory: the word of row r is in lane r % 32 and column r / 32. All four warps' lanes need a copy, so 128 rows
// take 4 columns. tcgen05.cp.32x128b.warpx4 makes the copies. It reads 32 x 16 bytes of shared memory: byte s of row r
// is at r % 32 * 16 + r / 32 * 4 + s. The columns of B are like the rows of A.
// Source: PTX ISA, "Block Scaling for tcgen05.mma". Day 17 derives these functions. They have run in the simulator only.
#pragma once

#include "llmk/tcgen05.cuh"

namespace llmk {

// Return the instruction descriptor of kind::mxf4nvf4 with e4m3 scales: 128 rows, and `columns` columns, a multiple of 8.
__host__ __device__ constexpr unsigned make_instr_desc_mxf4nvf4(int rows, int columns) {
    return 1u << 7 | 1u << 10 | static_cast<unsigned>(columns / 8) << 17 | static_cast<unsigned>(rows / 128) << 27;
}

// Return the shared-memory descriptor of 32 x 16 bytes of scale factors, without a swizzle.
__device__ __forceinline__ uint64_t make_scale_smem_desc(const void* scales) {
    const uint64_t address = (shared_address(scales) & 0x3ffff) >> 4;
    return address | static_cast<uint64_t>(128 >> 4) << 32 | 1ull << 46;
}

// tcgen05.cp.32x128b.warpx4: copy 32 x 16 bytes of shared memory to four columns, for the lanes of each warp. One thread
// issues it. An mma that the same thread issues later sees the copies without a wait.
__device__ __forceinline__ void tcgen05_cp_32x128b_warpx4(unsigned columns, uint64_t scales) {
    asm volatile("tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;" ::"r"(columns), "l"(scales) : "memory");
}

// tcgen05.mma.kind::mxf4nvf4 with scale_vec::4X: accumulators (+)= (a a_scales) (b b_scales), 64 deep. a_scales and
// b_scales: addresses in tensor memory. The other parameters are those of tcgen05_mma.
__device__ __forceinline__ void tcgen05_mma_mxf4nvf4(unsigned accumulators, uint64_t a, uint64_t b, unsigned instr_desc,
                                                     unsigned a_scales, unsigned b_scales, unsigned add) {
    asm volatile(
        "{ .reg .pred p;\n"
        "setp.ne.b32 p, %6, 0;\n"
        "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X [%0], %1, %2, %3, [%4], [%5], p; }" ::"r"(
            accumulators),
        "l"(a), "l"(b), "r"(instr_desc), "r"(a_scales), "r"(b_scales), "r"(add)
        : "memory");
}

}  // namespace llmk
