// Blackwell's tensor cores (PTX ISA, tcgen05 instructions): MMAs issued by one thread, and tensor memory for their
// accumulators, 128 lanes x 512 columns x 32 bits per block. An address has the lane in its upper 16 bits and the
// column in its lower 16.
#pragma once

#include <stdint.h>

#include "sim/site.h"

#pragma GCC visibility push(default)
namespace sim {

constexpr unsigned tensor_lanes = 128, tensor_columns = 512;

// The shape of tcgen05.ld and tcgen05.st. For example, one repetition of lanes16_bits64 moves 64 bits of each of 16
// lanes.
enum class TensorShape : uint8_t { lanes32_bits32, lanes16_bits64, lanes16_bits128, lanes16_bits256 };

constexpr unsigned registers_of(TensorShape shape, unsigned repetitions) {
    return shape == TensorShape::lanes16_bits128   ? 2 * repetitions
           : shape == TensorShape::lanes16_bits256 ? 4 * repetitions
                                                   : repetitions;
}

// All lanes of a warp call these functions. `pair`: both blocks of the CTA pair execute the instruction together
// (cta_group::2).
void tensor_allocate(Site site, bool pair, void* address_goes_to, uint32_t columns);
void tensor_release(Site site, bool pair, uint32_t address, uint32_t columns);
void tensor_relinquish_alloc_permit(Site site, bool pair);

enum class Tcgen05Kind : uint8_t { f16, mxf8f6f4, mxf4, mxf4nvf4 };

// d = a b or d += a b, issued by one thread. `a` is a matrix descriptor, or with `a_in_tensor_memory` an address in
// tensor memory. Kinds other than f16 are block-scaled: each row of A and column of B has `scales` factors in tensor
// memory.
struct Tcgen05Mma {
    uint64_t a, b;         // matrix descriptors
    uint32_t d;            // address of the accumulators
    uint32_t instruction;  // the instruction descriptor: types, shape, signs, majors
    bool pair, a_in_tensor_memory, adds;
    Tcgen05Kind kind = Tcgen05Kind::f16;
    unsigned scales = 0;                // the number in .scale_vec::1X, 2X or 4X
    uint32_t scale_a = 0, scale_b = 0;  // addresses of the scale factors
};
void tensor_multiply(Site site, const Tcgen05Mma& product);
// tcgen05.cp: copies 128 lanes of 128 or 256 bits from shared memory. With `warpx4` it copies 32 lanes, to the lanes of
// each of four warps.
void tensor_copy_from_shared(Site site, bool pair, uint32_t address, uint64_t from, unsigned bits, bool warpx4);
// tcgen05.commit: arrives at the mbarrier when all operations that the thread has issued are complete. With
// `multicast`, it arrives at the mbarriers of `blocks`.
void tensor_commit(Site site, bool pair, void* mbarrier, bool multicast, uint32_t blocks);

// All lanes of a warp call these functions. The variadic arguments are registers_of(shape, repetitions) 32-bit
// variables of the thread: their addresses for a load, their values for a store.
void tensor_load(Site site, TensorShape shape, unsigned repetitions, uint32_t address, ...);
void tensor_store(Site site, TensorShape shape, unsigned repetitions, uint32_t address, ...);
void tensor_wait_loaded(Site site);
void tensor_wait_stored(Site site);

void tensor_fence_before();
void tensor_fence_after();

}  // namespace sim
#pragma GCC visibility pop
