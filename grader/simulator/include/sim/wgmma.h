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

// Element types, with PTX's names.
enum class Element : uint8_t { f16, bf16, tf32, e4m3, e5m2, s8, u8, f32, s32 };

// d = a b or d += a b, with shapes d [64, n], a [64, k], b [k, n]. A row of A and a column of B are 32 bytes.
struct Wgmma {
    uint16_t n;
    Element d, a, b;
    bool a_in_registers;
    bool negate_a, negate_b;
    // MN-major layout: the elements of a column of A, or of a row of B, are contiguous in shared memory
    bool transpose_a, transpose_b;
    bool saturate;

    constexpr unsigned k() const { return a == Element::tf32 ? 8 : a == Element::f16 || a == Element::bf16 ? 16 : 32; }
    // Returns the number of 32-bit accumulator registers per thread.
    constexpr unsigned registers() const { return d == Element::f16 ? n / 4u : n / 2u; }
};

// `a01` and `a23`: the four registers of A, two in each. If A is in shared memory, `a01` is its descriptor and `a23` is
// unused. The variadic arguments are kind.registers() addresses, one for each accumulator register.
void wgmma(Site site, Wgmma kind, uint64_t a01, uint64_t a23, uint64_t b, int adds, ...);
void wgmma_fence(Site site);
void wgmma_commit(Site site);
void wgmma_wait(Site site, unsigned groups_that_may_be_pending);

}  // namespace sim
#pragma GCC visibility pop
