// Operand types of the tensor cores: each has its own peak rate.
#pragma once

#include "sim/wgmma.h"

namespace sim {

// The type of a tensor-core operation, by which operations are counted. It is named after the type of operand A, which
// decides the throughput. f16_sums: f16 operands with f16 accumulators.
enum class TensorType : uint8_t { f16, f16_sums, bf16, tf32, e4m3, e5m2, s8, u8, f64, count };
constexpr unsigned tensor_types = static_cast<unsigned>(TensorType::count);

constexpr TensorType tensor_type(const Wgmma& kind) {
    switch (kind.a) {
        case Element::f16:
            return kind.d == Element::f16 ? TensorType::f16_sums : TensorType::f16;
        case Element::bf16:
            return TensorType::bf16;
        case Element::tf32:
            return TensorType::tf32;
        case Element::e4m3:
            return TensorType::e4m3;
        case Element::e5m2:
            return TensorType::e5m2;
        case Element::s8:
            return TensorType::s8;
        case Element::u8:
            return TensorType::u8;
        default:
            return TensorType::count;  // wgmma does not support this type
    }
}

}  // namespace sim
