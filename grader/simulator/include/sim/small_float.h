// Conversions between float and the two 16-bit formats, on bit patterns.
//
//   f16  (half)      1 sign, 5 exponent, 10 mantissa bits    largest 65504, smallest normal 2^-14, subnormals to 2^-24
//   bf16 (bfloat16)  1 sign, 8 exponent,  7 mantissa bits    the upper half of a float
//
// All results are those of PTX's cvt: subnormals are kept, a value halfway between two results goes to the even one
// (.rn), overflow gives infinity (.rn), and every NaN becomes the canonical one, 0x7fff.
#pragma once

#include <cstdint>
#include <cstring>

#define SIM_INLINE __attribute__((always_inline)) inline
#define SIM_JOIN(a, b) SIM_JOIN_EXPANDED(a, b)
#define SIM_JOIN_EXPANDED(a, b) a##b

namespace sim {

template <typename To, typename From>
SIM_INLINE To bit_cast(From from) {
    static_assert(sizeof(To) == sizeof(From), "a bit cast keeps the size");
    To to;
    std::memcpy(&to, &from, sizeof to);
    return to;
}

// The rounding modes of PTX: to nearest even, toward zero, toward minus infinity, toward plus infinity.
enum class Rounding { nearest, zero, down, up };

// double -> float that keeps the value's inexactness visible in the last bit ("round to odd"). A second rounding, to
// 16 bits, then gives what one rounding of the double would have given.
SIM_INLINE float round_to_odd(double value) {
    float rounded = static_cast<float>(value);
    if (static_cast<double>(rounded) != value && value == value) {
        uint32_t bits = bit_cast<uint32_t>(rounded);
        if ((bits & 1) == 0) {
            double magnitude = value < 0 ? -value : value;
            double rounded_magnitude = static_cast<double>(bit_cast<float>(bits & 0x7fffffff));
            bits += rounded_magnitude > magnitude ? -1 : 1;
            rounded = bit_cast<float>(bits);
        }
    }
    return rounded;
}

// The sum of two doubles, rounded to odd, for the same reason.
SIM_INLINE double add_to_odd(double a, double b) {
    double sum = a + b;
    double b_part = sum - a;
    double error = (a - (sum - b_part)) + (b - b_part);  // exact (Knuth's two-sum), or NaN when the sum is not finite
    if (error != 0 && error == error) {
        uint64_t bits = bit_cast<uint64_t>(sum);
        if ((bits & 1) == 0) {
            bits += (error > 0) == (sum > 0) ? 1 : -1;
            sum = bit_cast<double>(bits);
        }
    }
    return sum;
}

struct F16 {
    static constexpr bool product_fits_float = true;  // 22 bits, exponents -48 to 31
    static constexpr uint16_t nan = 0x7fff, infinity = 0x7c00, largest = 0x7bff, one = 0x3c00;

    static SIM_INLINE float to_float(uint16_t half) {
        uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
        uint32_t exponent = (half >> 10) & 0x1f, mantissa = half & 0x3ff;
        if (exponent == 0) {  // zero or subnormal: a multiple of 2^-24
            float magnitude = static_cast<float>(static_cast<int>(mantissa)) * 5.9604644775390625e-8f;
            return bit_cast<float>(bit_cast<uint32_t>(magnitude) | sign);
        }
        if (exponent == 0x1f) return bit_cast<float>(mantissa ? 0x7fffffffu : sign | 0x7f800000u);
        return bit_cast<float>(sign | (exponent + (127 - 15)) << 23 | mantissa << 13);
    }

    static SIM_INLINE uint16_t from_float(float value) {
        uint32_t bits = bit_cast<uint32_t>(value);
        uint32_t sign = (bits >> 16) & 0x8000;
        bits &= 0x7fffffff;
        if (bits >= 0x47800000) return bits > 0x7f800000 ? nan : sign | infinity;  // 65536 and more
        if (bits < 0x38800000) {
            // Below 2^-14 the result is a multiple of 2^-24, which is the last bit of a float near 0.5: the addition
            // rounds for us, to nearest even.
            return sign | (bit_cast<uint32_t>(bit_cast<float>(bits) + 0.5f) - 0x3f000000);
        }
        uint32_t odd = (bits >> 13) & 1;
        return sign | ((bits - ((127 - 15) << 23) + 0xfff + odd) >> 13);  // may carry into infinity, as it should
    }
};

struct BF16 {
    static constexpr bool product_fits_float = false;  // its exponent can lie below a float's
    static constexpr uint16_t nan = 0x7fff, infinity = 0x7f80, largest = 0x7f7f, one = 0x3f80;

    static SIM_INLINE float to_float(uint16_t bits) { return bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

    static SIM_INLINE uint16_t from_float(float value) {
        uint32_t bits = bit_cast<uint32_t>(value);
        if ((bits & 0x7fffffff) > 0x7f800000) return nan;
        return (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    }
};

template <typename Format>
SIM_INLINE uint16_t small_from_double(double value) {
    return Format::from_float(round_to_odd(value));
}

// Rounding other than to nearest: round to nearest, then step back by one unit if that went the wrong way.
template <typename Format>
inline uint16_t small_from_double(double value, Rounding mode) {
    uint16_t bits = small_from_double<Format>(value);
    double rounded = static_cast<double>(Format::to_float(bits));
    if (mode == Rounding::nearest || value != value || rounded == value) return bits;
    bool negative = bits & 0x8000;
    bool is_above = rounded > value;
    bool want_below = mode == Rounding::down || (mode == Rounding::zero && !negative);
    if (is_above == want_below) {
        // Bit patterns of one sign are ordered by magnitude. A step below plus zero is the smallest negative number.
        if ((bits & 0x7fff) == 0) return want_below ? 0x8001 : 0x0001;
        return bits + (want_below == negative ? 1 : -1);
    }
    return bits;
}

// integer -> 16 bits. A 64-bit integer may not fit a double: odd rounding again keeps what the second one must know.
template <typename Format, typename Integer>
inline uint16_t small_from_integer(Integer value, Rounding mode) {
    constexpr int low_bits = sizeof(Integer) < 8 ? 0 : 32;
    Integer high = low_bits ? value >> low_bits : 0;
    double upper = static_cast<double>(high) * 4294967296.0;
    double lower = static_cast<double>(low_bits ? value & static_cast<Integer>(0xffffffff) : value);
    return small_from_double<Format>(add_to_odd(upper, lower), mode);
}

// float -> integer as the GPU does it: rounds, saturates, NaN gives 0 (or the sign bit for 64-bit results).
template <typename Integer>
inline Integer saturating_integer(double value, Rounding mode) {
    constexpr bool is_signed = static_cast<Integer>(-1) < static_cast<Integer>(0);
    constexpr int digits = static_cast<int>(8 * sizeof(Integer)) - (is_signed ? 1 : 0);
    constexpr Integer most = static_cast<Integer>(~static_cast<uint64_t>(0) >> (64 - digits));
    constexpr Integer least = is_signed ? static_cast<Integer>(-most - 1) : static_cast<Integer>(0);
    if (value != value) return sizeof(Integer) < 8 ? 0 : static_cast<Integer>(static_cast<uint64_t>(1) << 63);
    switch (mode) {
        case Rounding::nearest:
            value = __builtin_rint(value);
            break;
        case Rounding::zero:
            value = __builtin_trunc(value);
            break;
        case Rounding::down:
            value = __builtin_floor(value);
            break;
        case Rounding::up:
            value = __builtin_ceil(value);
            break;
    }
    double limit = static_cast<double>(static_cast<uint64_t>(1) << (digits - 1)) * 2;  // most + 1
    if (value >= limit) return most;
    if (value < (is_signed ? -limit : 0.0)) return least;
    return static_cast<Integer>(value);
}

}  // namespace sim
