// Operand types of the tensor cores: each has its own peak rate.
#pragma once

#include "sim/wgmma.h"

namespace sim {

// The type of a tensor-core operation, by which operations are counted. It is named after the type of operand A, which
// decides the throughput. f16_sums: f16 operands with f16 accumulators.
// The first types have the order of Element.
enum class TensorType : uint8_t { f16, bf16, tf32, e4m3, e5m2, s8, u8, f16_sums, f64, count };
constexpr unsigned tensor_types = static_cast<unsigned>(TensorType::count);

// Returns `count` for a type that wgmma does not support.
constexpr TensorType tensor_type(const Wgmma& kind) {
    if (kind.a > Element::u8) return TensorType::count;
    bool sums = kind.a == Element::f16 && kind.d == Element::f16;
    return sums ? TensorType::f16_sums : static_cast<TensorType>(kind.a);
}

}  // namespace sim
