// Floating-point formats of 8, 6 and 4 bits: conversions on bit patterns.
//
//   e4m3  8 bits  largest 448, no infinity, one NaN of each sign (0x7f, 0xff)
//   e5m2  8 bits  largest 57344, infinities and NaNs: the upper byte of a half
//   e3m2  6 bits  largest 28          e2m3  6 bits  largest 7.5        e2m1  4 bits  largest 6
//   e8m0  8 bits  2^(bits - 127), without a sign; 0xff is NaN
//
// Sources: "FP8 Formats for Deep Learning" (Micikevicius et al., 2022), OCP Microscaling Formats (MX) Specification
// v1.0, PTX ISA (cvt), CUDA Math API. All values were compared with the functions of CUDA 13.0's headers.
#pragma once

#include <stdint.h>

#include "sim/small_float.h"

namespace sim {

// A format with a sign. `Nan` is the bit pattern of NaN. `Overflow` is the bit pattern of the result for values that
// are too large, in conversions without saturation. The formats of 6 and 4 bits have neither: NaN becomes the largest
// number.
template <int ExponentBits, int MantissaBits, unsigned Largest, unsigned Overflow, unsigned Nan>
struct NarrowFloat {
    static constexpr int mantissa_bits = MantissaBits;
    static constexpr int bias = (1 << (ExponentBits - 1)) - 1;
    static constexpr unsigned bits = 1 + ExponentBits + MantissaBits;
    static constexpr unsigned sign_bit = 1u << (bits - 1);
    static constexpr unsigned magnitude_mask = sign_bit - 1;
    static constexpr unsigned largest = Largest;
    static constexpr bool has_nan = Nan != Largest;

    SIM_OUTLINE float decode(unsigned pattern) {
        uint32_t magnitude = pattern & magnitude_mask;
        uint32_t sign = pattern & sign_bit ? 0x80000000u : 0;
        if (magnitude > Largest) {
            bool infinite = magnitude == Overflow && Overflow != Nan;
            return bit_cast<float>(infinite ? sign | 0x7f800000 : 0x7fffffff);
        }
        // Shifted into a float, the bits mean a value that is too small by 2^(difference of the biases). This also
        // holds for subnormals, so one multiplication decodes all values.
        float scale = bit_cast<float>(static_cast<uint32_t>(127 + 127 - bias) << 23);
        return bit_cast<float>(bit_cast<uint32_t>(bit_cast<float>(magnitude << (23 - MantissaBits)) * scale) | sign);
    }

    SIM_OUTLINE unsigned encode_double(double value, bool saturates, bool to_nearest) {
        uint64_t word = bit_cast<uint64_t>(value);
        unsigned sign = word >> 63 ? sign_bit : 0;
        word &= ~(uint64_t(1) << 63);
        if (word > uint64_t(0x7ff) << 52) {
            // e5m2 keeps the upper bits of a NaN's mantissa.
            if (!has_nan) return Largest;
            return sign | (Overflow != Nan ? 0x7e | (word >> (52 - MantissaBits) & 1) : Nan);
        }
        // Cut the significand at the format's last bit. Subnormal numbers have fewer bits.
        int exponent = static_cast<int>(word >> 52) - 1023;
        int unit = (exponent < 1 - bias ? 1 - bias : exponent) - MantissaBits;  // exponent of the last bit
        int dropped = 52 - exponent + unit;
        if (exponent < 1 - bias - MantissaBits - 1) return sign;  // below half the smallest number
        uint64_t significand = (word & ((uint64_t(1) << 52) - 1)) | uint64_t(1) << 52;
        uint64_t kept = significand >> dropped, rest = significand & ((uint64_t(1) << dropped) - 1);
        uint64_t half = uint64_t(1) << (dropped - 1);
        if (to_nearest && (rest > half || (rest == half && kept % 2))) ++kept;
        // For a normal number, `kept` includes the hidden bit. Adding `kept` below thus adds 1 to the exponent field,
        // so the pattern is computed with `biased - 1`.
        int biased = unit + MantissaBits + bias;  // 1 for subnormal numbers
        uint64_t pattern = kept + (static_cast<uint64_t>(biased - 1) << MantissaBits);
        if (pattern > Largest) pattern = saturates || !has_nan ? Largest : Overflow;
        return sign | static_cast<unsigned>(pattern);
    }

    // All NaNs of float, half and bf16 become the positive NaN. NaNs of double keep their sign.
    SIM_OUTLINE unsigned encode(float value, bool saturates, bool to_nearest) {
        if (has_nan && value != value) return 0x7f;
        return encode_double(static_cast<double>(value), saturates, to_nearest);
    }
};

using E4M3 = NarrowFloat<4, 3, 0x7e, 0x7f, 0x7f>;
using E5M2 = NarrowFloat<5, 2, 0x7b, 0x7c, 0x7f>;
using E3M2 = NarrowFloat<3, 2, 0x1f, 0x1f, 0x1f>;
using E2M3 = NarrowFloat<2, 3, 0x1f, 0x1f, 0x1f>;
using E2M1 = NarrowFloat<2, 1, 0x07, 0x07, 0x07>;

// The format e8m0, powers of two. Rounds the magnitude up (cudaRoundPosInf) or down (cudaRoundZero).
struct E8M0 {
    static constexpr unsigned bits = 8;
    static constexpr unsigned magnitude_mask = 0xff;

    SIM_OUTLINE float decode(unsigned pattern) {
        if (pattern == 0xff) return bit_cast<float>(0x7fff0000);
        return bit_cast<float>(pattern == 0 ? 0x00400000 : pattern << 23);
    }
    SIM_OUTLINE unsigned encode(float value, bool saturates, bool up) {
        uint32_t word = bit_cast<uint32_t>(value) & 0x7fffffff;
        if (word > 0x7f800000) return 0xff;
        uint32_t exponent = word >> 23;
        // The smallest value of this format, 2^-127, is half the smallest normal float. Numbers up to 2^-127 become 2^-127.
        if (up && word > 0x00400000 && word < 0x7f800000 && (word & 0x7fffff)) ++exponent;
        return exponent == 0xff && saturates ? 0xfe : exponent;
    }
    SIM_OUTLINE unsigned encode_double(double value, bool saturates, bool up) {
        return encode(round_to_odd(value), saturates, up);
    }
};

}  // namespace sim
