// Floating-point formats of 8, 6 and 4 bits: conversions on bit patterns, and the types of cuda_fp8.h, cuda_fp6.h and
// cuda_fp4.h.
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

#include <type_traits>

#include "cuda_bf16.h"
#include "cuda_fp16.h"

typedef unsigned char __nv_fp8_storage_t;
typedef unsigned short __nv_fp8x2_storage_t;
typedef unsigned int __nv_fp8x4_storage_t;
enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE };
enum cudaRoundMode { cudaRoundNearest, cudaRoundZero, cudaRoundPosInf, cudaRoundMinInf };

namespace sim {

// A format with a sign. `Nan` is the pattern of NaN and `Overflow` that of values too large for it, if they do not
// saturate. The formats of 6 and 4 bits have neither: there NaN becomes the largest number.
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
        // As a float, the same bits are too small by the difference of the biases, subnormals included.
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
        // The significand is cut where the format's last bit is; below the normal numbers, further to the left.
        int exponent = static_cast<int>(word >> 52) - 1023;
        int unit = (exponent < 1 - bias ? 1 - bias : exponent) - MantissaBits;  // exponent of the last bit
        int dropped = 52 - exponent + unit;
        if (exponent < 1 - bias - MantissaBits - 1) return sign;  // below half the smallest number
        uint64_t significand = (word & ((uint64_t(1) << 52) - 1)) | uint64_t(1) << 52;
        uint64_t kept = significand >> dropped, rest = significand & ((uint64_t(1) << dropped) - 1);
        uint64_t half = uint64_t(1) << (dropped - 1);
        if (to_nearest && (rest > half || (rest == half && kept % 2))) ++kept;
        // kept has the hidden bit if the number is normal, so the exponent counts from one less.
        int biased = unit + MantissaBits + bias;  // 1 for subnormal numbers
        uint64_t pattern = kept + (static_cast<uint64_t>(biased - 1) << MantissaBits);
        if (pattern > Largest) pattern = saturates || !has_nan ? Largest : Overflow;
        return sign | static_cast<unsigned>(pattern);
    }

    // Unlike those of double, all NaNs of float, half and bf16 become the positive one.
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

// A power of two. Rounds up (cudaRoundPosInf) by magnitude, or down (cudaRoundZero).
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
        // 2^-127 is half the smallest normal float: what is not larger becomes it.
        if (up && word > 0x00400000 && word < 0x7f800000 && (word & 0x7fffff)) ++exponent;
        return exponent == 0xff && saturates ? 0xfe : exponent;
    }
    SIM_OUTLINE unsigned encode_double(double value, bool saturates, bool up) {
        return encode(round_to_odd(value), saturates, up);
    }
};

// --------------------------------------------------------------------------------------------------------------- types

// By value, as CUDA's constructors convert: saturating, to nearest; powers of two upwards.
template <typename Format>
struct NarrowValue {
    unsigned char __x;

    NarrowValue() = default;
    explicit SIM_INLINE NarrowValue(__half value) : NarrowValue(__half2float(value)) {}
    explicit SIM_INLINE NarrowValue(__nv_bfloat16 value) : NarrowValue(__bfloat162float(value)) {}
    explicit SIM_INLINE NarrowValue(float value) : __x(static_cast<unsigned char>(Format::encode(value, true, true))) {}
    explicit SIM_INLINE NarrowValue(double value)
        : __x(static_cast<unsigned char>(Format::encode_double(value, true, true))) {}
    explicit SIM_INLINE NarrowValue(unsigned short value) : NarrowValue(static_cast<float>(value)) {}
    explicit SIM_INLINE NarrowValue(short value) : NarrowValue(static_cast<float>(value)) {}
    explicit SIM_INLINE NarrowValue(unsigned int value) : NarrowValue(static_cast<double>(value)) {}
    explicit SIM_INLINE NarrowValue(int value) : NarrowValue(static_cast<double>(value)) {}
    explicit SIM_INLINE NarrowValue(unsigned long value) : NarrowValue(static_cast<unsigned long long>(value)) {}
    explicit SIM_INLINE NarrowValue(long value) : NarrowValue(static_cast<long long>(value)) {}
    explicit SIM_INLINE NarrowValue(unsigned long long value) : NarrowValue(wide(value)) {}
    explicit SIM_INLINE NarrowValue(long long value) : NarrowValue(wide(value)) {}

    explicit SIM_INLINE operator float() const { return Format::decode(__x); }
    explicit SIM_INLINE operator double() const { return static_cast<double>(Format::decode(__x)); }
    explicit SIM_INLINE operator __half() const { return __float2half(Format::decode(__x)); }
    explicit SIM_INLINE operator __nv_bfloat16() const { return __float2bfloat16(Format::decode(__x)); }
    explicit SIM_INLINE operator bool() const { return std::is_same<Format, E8M0>::value || nonzero(); }
    explicit SIM_INLINE operator char() const { return integer<char>(); }
    explicit SIM_INLINE operator signed char() const { return integer<signed char>(); }
    explicit SIM_INLINE operator unsigned char() const { return integer<unsigned char>(); }
    explicit SIM_INLINE operator short() const { return integer<short>(); }
    explicit SIM_INLINE operator unsigned short() const { return integer<unsigned short>(); }
    explicit SIM_INLINE operator int() const { return integer<int>(); }
    explicit SIM_INLINE operator unsigned int() const { return integer<unsigned int>(); }
    explicit SIM_INLINE operator long() const { return integer<long>(); }
    explicit SIM_INLINE operator unsigned long() const { return integer<unsigned long>(); }
    explicit SIM_INLINE operator long long() const { return integer<long long>(); }
    explicit SIM_INLINE operator unsigned long long() const { return integer<unsigned long long>(); }

  private:
    // A 64-bit integer as a double whose last bit says whether it is inexact, so that it is rounded once.
    template <typename Integer>
    static SIM_INLINE double wide(Integer value) {
        Integer high = value >> 32;
        return add_to_odd(static_cast<double>(high) * 4294967296.0, static_cast<double>(value & Integer(0xffffffff)));
    }
    SIM_INLINE bool nonzero() const { return (__x & Format::magnitude_mask) != 0; }
    template <typename Integer>
    SIM_INLINE Integer integer() const {
        return saturating_integer<Integer>(static_cast<double>(Format::decode(__x)), Rounding::zero);
    }
};

// Two and four values in one word, the first in its lowest bits; `Stride` bits from one to the next.
template <typename Format, typename Word, unsigned Stride>
struct NarrowPair {
    Word __x;

    NarrowPair() = default;
    explicit SIM_INLINE NarrowPair(__half2 value) : NarrowPair(__half22float2(value)) {}
    explicit SIM_INLINE NarrowPair(__nv_bfloat162 value) : NarrowPair(__bfloat1622float2(value)) {}
    explicit SIM_INLINE NarrowPair(float2 value)
        : __x(static_cast<Word>(Format::encode(value.x, true, true) | Format::encode(value.y, true, true) << Stride)) {}
    explicit SIM_INLINE NarrowPair(double2 value)
        : __x(static_cast<Word>(Format::encode_double(value.x, true, true) | Format::encode_double(value.y, true, true)
                                                                                 << Stride)) {}

    explicit SIM_INLINE operator float2() const {
        return make_float2(Format::decode(__x & mask), Format::decode(__x >> Stride & mask));
    }
    explicit SIM_INLINE operator __half2() const { return __float22half2_rn(static_cast<float2>(*this)); }
    explicit SIM_INLINE operator __nv_bfloat162() const { return __float22bfloat162_rn(static_cast<float2>(*this)); }

  private:
    static constexpr unsigned mask = (1u << Format::bits) - 1;
};

template <typename Format, typename Word, typename Pair, unsigned Stride>
struct NarrowFour {
    Word __x;

    NarrowFour() = default;
    explicit SIM_INLINE NarrowFour(__half2 low, __half2 high) : __x(joined(Pair(low), Pair(high))) {}
    explicit SIM_INLINE NarrowFour(__nv_bfloat162 low, __nv_bfloat162 high) : __x(joined(Pair(low), Pair(high))) {}
    explicit SIM_INLINE NarrowFour(float4 v) : __x(joined(Pair(make_float2(v.x, v.y)), Pair(make_float2(v.z, v.w)))) {}
    explicit SIM_INLINE NarrowFour(double4 v)
        : __x(joined(Pair(make_double2(v.x, v.y)), Pair(make_double2(v.z, v.w)))) {}

    explicit SIM_INLINE operator float4() const {
        return make_float4(Format::decode(__x & mask), Format::decode(__x >> Stride & mask),
                           Format::decode(__x >> (2 * Stride) & mask), Format::decode(__x >> (3 * Stride) & mask));
    }

  private:
    static constexpr unsigned mask = (1u << Format::bits) - 1;
    static SIM_INLINE Word joined(Pair low, Pair high) {
        return static_cast<Word>(low.__x | static_cast<Word>(high.__x) << (2 * Stride));
    }
};

}  // namespace sim

// The three types of a format: __nv_fp8_e4m3, __nv_fp8x2_e4m3 and __nv_fp8x4_e4m3 for SIM_NARROW(fp8, e4m3, E4M3, ...).
#define SIM_NARROW(width, name, Format, Pair, Four, stride)                                                 \
    struct __nv_##width##_##name : ::sim::NarrowValue<::sim::Format> {                                      \
        using NarrowValue::NarrowValue;                                                                     \
        __nv_##width##_##name() = default;                                                                  \
    };                                                                                                      \
    struct alignas(sizeof(Pair)) __nv_##width##x2_##name : ::sim::NarrowPair<::sim::Format, Pair, stride> { \
        using NarrowPair::NarrowPair;                                                                       \
        __nv_##width##x2_##name() = default;                                                                \
    };                                                                                                      \
    struct alignas(sizeof(Four)) __nv_##width##x4_##name                                                    \
        : ::sim::NarrowFour<::sim::Format, Four, __nv_##width##x2_##name, stride> {                         \
        using NarrowFour::NarrowFour;                                                                       \
        __nv_##width##x4_##name() = default;                                                                \
    };
