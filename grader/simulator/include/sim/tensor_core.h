// Warp-level tensor core instructions: mma, ldmatrix, stmatrix, movmatrix.
//
// A warp executes them together, and each lane holds a few 32-bit registers of each matrix. The functions here take and
// return a lane's registers by value, two per word, so a kernel's fragments stay registers, and the checks see no
// memory accesses. The callers (sim/ptx.h, mma.h) read and write memory lane by lane, as the hardware does. Layouts:
// PTX ISA, "Matrix Fragments for mma.m16n8k16" and the sections around it.
#pragma once

#include <stdint.h>

#include "sim/site.h"

#pragma GCC visibility push(default)
namespace sim {

// Four 32-bit registers: the first in the low half of `r01`.
struct Registers {
    uint64_t r01, r23;
};
constexpr uint64_t two_words(uint32_t first, uint32_t second) { return static_cast<uint64_t>(second) << 32 | first; }

// The kinds of d = a * b + c, by shape and the types of D, A and B: m16n8k16_f32_f16_f16.
enum class Mma : int {
#define SIM_MMA(M, N, K, D, A, B) m##M##n##N##k##K##_##D##_##A##_##B,
#include "sim/mma_shapes.def"
#undef SIM_MMA
};
// Returns the variant of an integer kind whose sums are clamped to the range of int instead of wrapping (.satfinite).
constexpr int saturating_bit = 1 << 8;
constexpr Mma saturating(Mma kind) { return static_cast<Mma>(static_cast<int>(kind) | saturating_bit); }
Registers mma(Site site, Mma kind, uint64_t a01, uint64_t a23, uint64_t b01, uint64_t c01, uint64_t c23);

// ldmatrix: distributes up to four 8x8 matrices of 16-bit elements over the lanes. Lane i provides the 16 bytes of row
// i % 8 of matrix i / 8. Each lane gets two elements of every matrix (or of its transpose): those in row lane / 4 and
// in the columns 2 * (lane % 4) and 2 * (lane % 4) + 1.
Registers ldmatrix(Site site, bool transposed, uint64_t row01, uint64_t row23);
// stmatrix: the inverse of ldmatrix. Each lane provides its two elements of every matrix. Lane i gets the 16 bytes of
// row i % 8 of matrix i / 8, which it then stores.
Registers stmatrix(Site site, bool transposed, uint64_t r01, uint64_t r23);
// Transposes each of four 8x8 matrices that are distributed over the lanes.
Registers movmatrix(Site site, uint64_t r01, uint64_t r23);

}  // namespace sim
#pragma GCC visibility pop
