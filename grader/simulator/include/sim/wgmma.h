// wgmma: asynchronous matrix multiply-accumulate of a warpgroup, with operands in shared memory (PTX ISA, "Asynchronous
// Warpgroup Level Matrix Multiply-Accumulate Instructions").
//
// Accumulators are registers on a GPU and variables of the threads here. From the wgmma until the wait for its group
// they hold NaNs.
#pragma once

#include <stdint.h>

#include "sim/site.h"

#pragma GCC visibility push(default)
namespace sim {

// Named as in PTX.
enum class Element : uint8_t { f16, bf16, tf32, e4m3, e5m2, s8, u8, f32, s32 };

// d [64, n] = a [64, k] b [k, n], or d + a b: a row of A and a column of B have 32 bytes.
struct Wgmma {
    uint16_t n;
    Element d, a, b;
    bool a_in_registers;
    bool negate_a, negate_b;
    // consecutive elements of a column of A, or of a row of B, are contiguous in shared memory
    bool transpose_a, transpose_b;
    bool saturate;

    constexpr unsigned k() const { return a == Element::tf32 ? 8 : a == Element::f16 || a == Element::bf16 ? 16 : 32; }
    constexpr unsigned registers() const {
        return d == Element::f16 ? n / 4u : n / 2u;
    }  // 32-bit registers of accumulators per thread
};

// `a01` and `a23`: four registers of A, or the descriptor of A and nothing. The addresses of the accumulators follow,
// kind.registers() of them.
void wgmma(Site site, Wgmma kind, uint64_t a01, uint64_t a23, uint64_t b, int adds, ...);
void wgmma_fence(Site site);
void wgmma_commit(Site site);
void wgmma_wait(Site site, unsigned groups_that_may_be_pending);

}  // namespace sim
#pragma GCC visibility pop
