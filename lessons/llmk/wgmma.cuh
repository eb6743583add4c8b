// Hopper's tensor cores (wgmma, sm_90a). A warpgroup is four consecutive warps, the first with a number divisible by 4.
// It multiplies a tile of 64 rows by a tile of N columns, 16 deep. B is in shared memory, A in shared memory or
// registers, the accumulators are in registers. wgmma is asynchronous: between wgmma_fence and wgmma_wait_group, do not
// touch the accumulators, the registers of A or the tiles. Source: PTX ISA, section "Asynchronous Warpgroup Level
// Matrix Multiply-Accumulate Instructions". Day 13 derives it.
//
// Accumulators c [64, N]: warp w of the warpgroup holds rows 16 w to 16 w + 15. Of these, lane i holds in c[4 g + 2 h +
// e] the element of row i / 4 + 8 h and column 8 g + i % 4 * 2 + e, with h and e 0 or 1.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <type_traits>

#include "llmk/mbarrier.cuh"

namespace llmk {

// Return the matrix descriptor of a tile in shared memory. The tile has rows of 64 elements (128 bytes) with the
// 128-byte swizzle, as tma_load writes them; 8 rows take 1,024 bytes, and the tile starts at a multiple of 1,024 bytes.
// To advance by 16 columns, add 32 bytes.
//   K-major    a row of the tile is a row of A or a column of B, its elements are along k: `leading` is not used
//   MN-major   a row of the tile is one k, its elements are columns of B: `leading` bytes from 64 columns to the next
__device__ __forceinline__ uint64_t make_smem_desc(const void* tile, unsigned leading = 16) {
    const uint64_t address = (shared_address(tile) & 0x3ffff) >> 4;
    return address | static_cast<uint64_t>(leading >> 4) << 16 | static_cast<uint64_t>(1024 >> 4) << 32 | 1ull << 62;
}

// wgmma.fence: order earlier writes to the registers of accumulators and A before the wgmma instructions that follow.
__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
// wgmma.commit_group: close a group of all wgmma instructions since the last commit.
__device__ __forceinline__ void wgmma_commit_group() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// wgmma.wait_group: wait until at most PENDING of the most recent wgmma groups are pending.
template <int PENDING>
__device__ __forceinline__ void wgmma_wait_group() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

// setmaxnreg.inc and .dec: set the registers per thread of this warpgroup, a multiple of 8. All warps of the warpgroup
// execute it once, in the branch of their role. Source: PTX ISA, section "Miscellaneous Instructions: setmaxnreg".
template <int REGISTERS>
__device__ __forceinline__ void setmaxnreg_inc() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}
template <int REGISTERS>
__device__ __forceinline__ void setmaxnreg_dec() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

// wgmma.mma_async.m64nNk16: c [64, N] (+)= a [64, 16] b [16, N]; add = 0 overwrites c. N is 64, 80, 128 or 256 (float
// c[N / 2]).
//   wgmma_ss   a and b are descriptors of K-major tiles in shared memory
//   wgmma_rs   a is in registers, each warp's 16 rows as in mma_m16n8k16; b is the descriptor of an MN-major
//              tile, or, for N = 128 with kMnMajor = false, of a K-major one

// wgmma names each of its accumulator registers, so there is one function per N. The macros list the accumulators once:
// LLMK_WGMMA_TEXT_n their names in the instruction, LLMK_WGMMA_C_n the operands c[0] to c[n - 1].
#define LLMK_WGMMA_TEXT_32                                                                                 \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, " \
    "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define LLMK_WGMMA_TEXT_40 \
    LLMK_WGMMA_TEXT_32     \
    ", %32, %33, %34, %35, %36, %37, %38, %39"
#define LLMK_WGMMA_TEXT_64                                                                                   \
    LLMK_WGMMA_TEXT_40                                                                                       \
    ", %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, " \
    "%60, %61, %62, %63"
#define LLMK_WGMMA_TEXT_128                                                                                    \
    LLMK_WGMMA_TEXT_64                                                                                         \
    ", %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, "   \
    "%84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, " \
    "%104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, "   \
    "%121, %122, %123, %124, %125, %126, %127"
#define LLMK_WGMMA_C_8(i)                                                                                       \
    "+f"(c[i]), "+f"(c[i + 1]), "+f"(c[i + 2]), "+f"(c[i + 3]), "+f"(c[i + 4]), "+f"(c[i + 5]), "+f"(c[i + 6]), \
        "+f"(c[i + 7])
#define LLMK_WGMMA_C_32 LLMK_WGMMA_C_8(0), LLMK_WGMMA_C_8(8), LLMK_WGMMA_C_8(16), LLMK_WGMMA_C_8(24)
#define LLMK_WGMMA_C_40 LLMK_WGMMA_C_32, LLMK_WGMMA_C_8(32)
#define LLMK_WGMMA_C_64 LLMK_WGMMA_C_40, LLMK_WGMMA_C_8(40), LLMK_WGMMA_C_8(48), LLMK_WGMMA_C_8(56)
#define LLMK_WGMMA_C_128                                                                             \
    LLMK_WGMMA_C_64, LLMK_WGMMA_C_8(64), LLMK_WGMMA_C_8(72), LLMK_WGMMA_C_8(80), LLMK_WGMMA_C_8(88), \
        LLMK_WGMMA_C_8(96), LLMK_WGMMA_C_8(104), LLMK_WGMMA_C_8(112), LLMK_WGMMA_C_8(120)

template <typename T>
__device__ __forceinline__ void wgmma_ss(float (&c)[32], uint64_t a, uint64_t b, unsigned add) {
    if constexpr (std::is_same<T, __half>::value) {
        asm volatile(
            "{ .reg .pred p;\n"
            "setp.ne.b32 p, %34, 0;\n"
            "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {" LLMK_WGMMA_TEXT_32 "}, %32, %33, p, 1, 1, 0, 0; }"
            : LLMK_WGMMA_C_32
            : "l"(a), "l"(b), "r"(add));
    } else {
        asm volatile(
            "{ .reg .pred p;\n"
            "setp.ne.b32 p, %34, 0;\n"
            "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" LLMK_WGMMA_TEXT_32 "}, %32, %33, p, 1, 1, 0, 0; }"
            : LLMK_WGMMA_C_32
            : "l"(a), "l"(b), "r"(add));
    }
}

template <typename T>
__device__ __forceinline__ void wgmma_rs(float (&c)[32], const unsigned (&a)[4], uint64_t b, unsigned add) {
    if constexpr (std::is_same<T, __half>::value) {
        asm volatile(
            "{ .reg .pred p;\n"
            "setp.ne.b32 p, %37, 0;\n"
            "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {" LLMK_WGMMA_TEXT_32
            "}, {%32, %33, %34, %35}, %36, p, 1, 1, 1; }"
            : LLMK_WGMMA_C_32
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add));
    } else {
        asm volatile(
            "{ .reg .pred p;\n"
            "setp.ne.b32 p, %37, 0;\n"
            "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" LLMK_WGMMA_TEXT_32
            "}, {%32, %33, %34, %35}, %36, p, 1, 1, 1; }"
            : LLMK_WGMMA_C_32
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add));
    }
}

template <typename T>
__device__ __forceinline__ void wgmma_ss(float (&c)[40], uint64_t a, uint64_t b, unsigned add) {
    if constexpr (std::is_same<T, __half>::value) {
        asm volatile(
            "{ .reg .pred p;\n"
            "setp.ne.b32 p, %42, 0;\n"
            "wgmma.mma_async.sync.aligned.m64n80k16.f32.f16.f16 {" LLMK_WGMMA_TEXT_40 "}, %40, %41, p, 1, 1, 0, 0; }"
            : LLMK_WGMMA_C_40
            : "l"(a), "l"(b), "r"(add));
    } else {
        asm volatile(
            "{ .reg .pred p;\n"
            "setp.ne.b32 p, %42, 0;\n"
            "wgmma.mma_async.sync.aligned.m64n80k16.f32.bf16.bf16 {" LLMK_WGMMA_TEXT_40 "}, %40, %41, p, 1, 1, 0, 0; }"
            : LLMK_WGMMA_C_40
            : "l"(a), "l"(b), "r"(add));
    }
}

template <typename T>
__device__ __forceinline__ void wgmma_rs(float (&c)[40], const unsigned (&a)[4], uint64_t b, unsigned add) {
    if constexpr (std::is_same<T, __half>::value) {
        asm volatile(
            "{ .reg .pred p;\n"
            "setp.ne.b32 p, %45, 0;\n"
            "wgmma.mma_async.sync.aligned.m64n80k16.f32.f16.f16 {" LLMK_WGMMA_TEXT_40
            "}, {%40, %41, %42, %43}, %44, p, 1, 1, 1; }"
            : LLMK_WGMMA_C_40
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add));
    } else {
        asm volatile(
            "{ .reg .pred p;\n"
            "setp.ne.b32 p, %45, 0;\n"
            "wgmma.mma_async.sync.aligned.m64n80k16.f32.bf16.bf16 {" LLMK_WGMMA_TEXT_40
            "}, {%40, %41, %42, %43}, %44, p, 1, 1, 1; }"
            : LLMK_WGMMA_C_40
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add));
    }
}

template <typename T>
__device__ __forceinline__ void wgmma_ss(float (&c)[64], uint64_t a, uint64_t b, unsigned add) {
    if constexpr (std::is_same<T, __half>::value) {
        asm volatile(
            "{ .reg .pred p;\n"
            "setp.ne.b32 p, %66, 0;\n"
            "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {" LLMK_WGMMA_TEXT_64 "}, %64, %65, p, 1, 1, 0, 0; }"
            : LLMK_WGMMA_C_64
            : "l"(a), "l"(b), "r"(add));
    } else {
        asm volatile(
            "{ .reg .pred p;\n"
            "setp.ne.b32 p, %66, 0;\n"
            "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" LLMK_WGMMA_TEXT_64 "}, %64, %65, p, 1, 1, 0, 0; }"
            : LLMK_WGMMA_C_64
            : "l"(a), "l"(b), "r"(add));
    }
}

template <typename T, bool kMnMajor = true>
__device__ __forceinline__ void wgmma_rs(float (&c)[64], const unsigned (&a)[4], uint64_t b, unsigned add) {
    if constexpr (std::is_same<T, __half>::value) {
        asm volatile(
            "{ .reg .pred p;\n"
            "setp.ne.b32 p, %69, 0;\n"
            "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {" LLMK_WGMMA_TEXT_64
            "}, {%64, %65, %66, %67}, %68, p, 1, 1, %70; }"
            : LLMK_WGMMA_C_64
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add), "n"(kMnMajor ? 1 : 0));
    } else {
        asm volatile(
            "{ .reg .pred p;\n"
            "setp.ne.b32 p, %69, 0;\n"
            "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" LLMK_WGMMA_TEXT_64
            "}, {%64, %65, %66, %67}, %68, p, 1, 1, %70; }"
            : LLMK_WGMMA_C_64
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add), "n"(kMnMajor ? 1 : 0));
    }
}

template <typename T>
__device__ __forceinline__ void wgmma_ss(float (&c)[128], uint64_t a, uint64_t b, unsigned add) {
    if constexpr (std::is_same<T, __half>::value) {
        asm volatile(
            "{ .reg .pred p;\n"
            "setp.ne.b32 p, %130, 0;\n"
            "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {" LLMK_WGMMA_TEXT_128
            "}, %128, %129, p, 1, 1, 0, 0; }"
            : LLMK_WGMMA_C_128
            : "l"(a), "l"(b), "r"(add));
    } else {
        asm volatile(
            "{ .reg .pred p;\n"
            "setp.ne.b32 p, %130, 0;\n"
            "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {" LLMK_WGMMA_TEXT_128
            "}, %128, %129, p, 1, 1, 0, 0; }"
            : LLMK_WGMMA_C_128
            : "l"(a), "l"(b), "r"(add));
    }
}

template <typename T>
__device__ __forceinline__ void wgmma_rs(float (&c)[128], const unsigned (&a)[4], uint64_t b, unsigned add) {
    if constexpr (std::is_same<T, __half>::value) {
        asm volatile(
            "{ .reg .pred p;\n"
            "setp.ne.b32 p, %133, 0;\n"
            "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {" LLMK_WGMMA_TEXT_128
            "}, {%128, %129, %130, %131}, %132, p, 1, 1, 1; }"
            : LLMK_WGMMA_C_128
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add));
    } else {
        asm volatile(
            "{ .reg .pred p;\n"
            "setp.ne.b32 p, %133, 0;\n"
            "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {" LLMK_WGMMA_TEXT_128
            "}, {%128, %129, %130, %131}, %132, p, 1, 1, 1; }"
            : LLMK_WGMMA_C_128
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(add));
    }
}

}  // namespace llmk
