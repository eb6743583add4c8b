// Number formats of the tensor cores.
#pragma once

#include <string.h>

#include "sim/small_float.h"

namespace sim {

// Tensor cores truncate an accumulator to float instead of rounding it.
inline float truncate_to_float(double value) {
    float rounded = static_cast<float>(value);
    uint32_t bits = bit_cast<uint32_t>(rounded);
    double excess = static_cast<double>(rounded) - value;
    bool too_large = value > 0 ? excess > 0 : excess < 0;
    if (too_large && (bits & 0x7f800000) != 0x7f800000) bits -= 1;
    return (bits & 0x7fffffff) > 0x7f800000 ? bit_cast<float>(0x7fffffffu) : bit_cast<float>(bits);
}

// Returns the bits of truncate_to_float's result, faster in the usual case of a value far from the ends of a float's
// range.
inline uint32_t truncated(double value) {
    uint64_t bits = bit_cast<uint64_t>(value);
    unsigned exponent = static_cast<unsigned>(bits >> 52 & 0x7ff);
    if (__builtin_expect(exponent - (1023 - 126) > 252, false)) {
        return bits << 1 ? bit_cast<uint32_t>(truncate_to_float(value)) : static_cast<uint32_t>(bits >> 32);
    }
    return bit_cast<uint32_t>(static_cast<float>(bit_cast<double>(bits & ~uint64_t(0x1fffffff))));
}

// The lowest 13 bits of the float are ignored.
inline float decode_tf32(uint32_t bits) { return bit_cast<float>(bits & 0xffffe000u); }

// 1 sign, 4 exponent and 3 mantissa bits, bias 7; no infinity, and one NaN of each sign.
inline float decode_e4m3(uint8_t bits) {
    uint32_t magnitude = bits & 0x7fu, sign = (bits & 0x80u) << 24;
    if (magnitude == 0x7f) return bit_cast<float>(0x7fffffffu);
    // Read as a float, the shifted bits give a number that is 2^120 times too small. This also holds for subnormal
    // numbers.
    return bit_cast<float>(bit_cast<uint32_t>(bit_cast<float>(magnitude << 20) * 0x1p120f) | sign);
}
// e5m2 is the upper byte of a half.
inline float decode_e5m2(uint8_t bits) { return F16::decode(static_cast<uint16_t>(bits << 8)); }

// The types of operands, with PTX's names: the bits of an element, and the number that they stand for.
namespace operands {
#define SIM_OPERAND(name, Pattern, Number, number)                                \
    struct name {                                                                 \
        using Bits = Pattern;                                                     \
        static Number value(Pattern bits) { return static_cast<Number>(number); } \
    };
SIM_OPERAND(f16, uint16_t, double, F16::decode(bits))
SIM_OPERAND(bf16, uint16_t, double, BF16::decode(bits))
SIM_OPERAND(tf32, uint32_t, double, decode_tf32(bits))
SIM_OPERAND(e4m3, uint8_t, double, decode_e4m3(bits))
SIM_OPERAND(e5m2, uint8_t, double, decode_e5m2(bits))
SIM_OPERAND(s8, uint8_t, int32_t, static_cast<int8_t>(bits))
SIM_OPERAND(u8, uint8_t, int32_t, bits)
SIM_OPERAND(f64, uint64_t, double, bit_cast<double>(bits))
#undef SIM_OPERAND
}  // namespace operands

// Returns element i of register r. Elements of 64 bits have registers of 64 bits.
template <typename T>
auto element_of(const void* registers, unsigned r, unsigned i) {
    typename T::Bits bits;
    size_t offset = r * (sizeof bits > 4 ? sizeof bits : 4) + i * sizeof bits;
    memcpy(&bits, static_cast<const char*>(registers) + offset, sizeof bits);
    return T::value(bits);
}

}  // namespace sim
