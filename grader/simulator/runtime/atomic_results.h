// The new value of an atomic operation, computed from the old one, for each type. Reductions by warps and bulk copies
// compute the same.
#pragma once

#include "sim/atomics.h"
#include "sim/small_float.h"

namespace sim {

template <typename T, typename Bits>
Bits integer_result(AtomicOp op, Bits old_bits, Bits operand_bits) {
    auto old = static_cast<T>(old_bits), operand = static_cast<T>(operand_bits);
    switch (op) {
        case AtomicOp::add:
            return old_bits + operand_bits;
        case AtomicOp::sub:
            return old_bits - operand_bits;
        case AtomicOp::min:
            return operand < old ? operand_bits : old_bits;
        case AtomicOp::max:
            return operand > old ? operand_bits : old_bits;
        case AtomicOp::bit_and:
            return old_bits & operand_bits;
        case AtomicOp::bit_or:
            return old_bits | operand_bits;
        case AtomicOp::bit_xor:
            return old_bits ^ operand_bits;
        case AtomicOp::increment:
            return old_bits >= operand_bits ? 0 : old_bits + 1;
        case AtomicOp::decrement:
            return old_bits == 0 || old_bits > operand_bits ? operand_bits : old_bits - 1;
        case AtomicOp::load:
            return old_bits;
        default:
            return operand_bits;  // exchange, store
    }
}

// __builtin_fmin instead of <math.h>, which would take longer to compile than this file.
template <typename T>
T floating_result(AtomicOp op, T old, T operand) {
    switch (op) {
        case AtomicOp::sub:
            return old - operand;
        case AtomicOp::min:
            return __builtin_fmin(old, operand);  // if one operand is NaN, the result is the other one
        case AtomicOp::max:
            return __builtin_fmax(old, operand);
        default:
            return old + operand;
    }
}

// Returns whether the operation only moves bits. For such an operation, the bits must not be converted to a
// floating-point value and back, which may change a NaN.
inline bool moves(AtomicOp op) { return op == AtomicOp::exchange || op == AtomicOp::store || op == AtomicOp::load; }

template <typename T, typename Bits>
Bits float_result(AtomicOp op, Bits old, Bits operand) {
    if (moves(op)) return op == AtomicOp::load ? old : operand;
    return bit_cast<Bits>(floating_result(op, bit_cast<T>(old), bit_cast<T>(operand)));
}

template <typename Format>
uint16_t small_result(AtomicOp op, uint16_t old, uint16_t operand) {
    if (moves(op)) return op == AtomicOp::load ? old : operand;
    return Format::from_float(floating_result(op, Format::to_float(old), Format::to_float(operand)));
}

}  // namespace sim
