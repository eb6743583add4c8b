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

#define SIM_INLINE __attribute__((always_inline, no_sanitize("object-size"))) inline
// Functions with SIM_OUTLINE are not inlined, because kernels may use hundreds of conversions, and g++ needs
// milliseconds for each inlined copy. The functions take and return values, so they have no accesses that the checks
// should see.
#define SIM_OUTLINE __attribute__((noinline, const, unused)) static
#define SIM_JOIN(a, b) SIM_JOIN_EXPANDED(a, b)
#define SIM_JOIN_EXPANDED(a, b) a##b

// Marker calls for operations on 16-bit types, in kernels that are built to count floating-point operations. The marker
// is counted, and the code that emulates the operation is not (grader/simulator/disassembly.py).
#ifdef SIM_COUNT_OPERATIONS
#if defined(__clang__)
#define SIM_MARK __attribute__((noinline, unused, no_sanitize("coverage"))) static void
#else
#define SIM_MARK __attribute__((noinline, unused, no_sanitize_coverage)) static void
#endif
SIM_MARK sim_counts_1_operation() { __asm__ volatile(""); }
SIM_MARK sim_counts_2_operations() { __asm__ volatile(""); }
SIM_MARK sim_counts_special_function() { __asm__ volatile(""); }
SIM_MARK sim_counts_conversion() { __asm__ volatile(""); }
#undef SIM_MARK
#define SIM_COUNTS(what) (::sim_counts_##what())
#else
#define SIM_COUNTS(what) (static_cast<void>(0))
#endif

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

// Returns all ones if the condition holds, else 0. Selection without branches makes kernels with many conversions
// compile faster.
SIM_INLINE uint32_t mask_if(bool condition) { return -static_cast<uint32_t>(condition); }

// double -> float, "rounded to odd": the last bit is set if the conversion is inexact. A second rounding, to 16 bits,
// then gives the same result as rounding the double once.
SIM_INLINE float round_to_odd(double value) {
    float rounded = static_cast<float>(value);
    double back = static_cast<double>(rounded);
    uint32_t bits = bit_cast<uint32_t>(rounded);
    uint32_t inexact_and_even = mask_if((back < value) | (back > value)) & ~-(bits & 1);
    bool too_large = (back > value) == (value > 0);  // its magnitude is too large
    bits += inexact_and_even & (1 - 2 * static_cast<uint32_t>(too_large));
    return bit_cast<float>(bits);
}

// The sum of two numbers, rounded to odd for the same reason. `error` is exactly the rounding error of the sum (Knuth's
// two-sum), or NaN if the sum is not finite.
SIM_INLINE double add_to_odd(double a, double b) {
    double sum = a + b, b_part = sum - a;
    double error = (a - (sum - b_part)) + (b - b_part);
    uint64_t bits = bit_cast<uint64_t>(sum);
    uint64_t inexact_and_even = -static_cast<uint64_t>((error < 0) | (error > 0)) & ~-(bits & 1);
    bits += inexact_and_even & (1 - 2 * static_cast<uint64_t>((error > 0) != (sum > 0)));
    return bit_cast<double>(bits);
}
SIM_INLINE float add_to_odd(float a, float b) {
    float sum = a + b, b_part = sum - a;
    float error = (a - (sum - b_part)) + (b - b_part);
    uint32_t bits = bit_cast<uint32_t>(sum);
    uint32_t inexact_and_even = mask_if((error < 0) | (error > 0)) & ~-(bits & 1);
    bits += inexact_and_even & (1 - 2 * static_cast<uint32_t>((error > 0) != (sum > 0)));
    return bit_cast<float>(bits);
}

struct F16 {
    static constexpr bool product_fits_float = true;  // 22 bits, exponents -48 to 31
    static constexpr uint16_t nan = 0x7fff, infinity = 0x7c00, largest = 0x7bff, one = 0x3c00;

    static SIM_INLINE float decode(uint16_t half) {
        // Shifted into a float, the bits mean a value that is 2^112 times too small. This also holds for subnormals, so
        // one multiplication decodes all values.
        uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
        uint32_t magnitude = static_cast<uint32_t>(half & 0x7fff) << 13;
        uint32_t bits = bit_cast<uint32_t>(bit_cast<float>(magnitude) * 5.192296858534828e33f);
        bits |= mask_if((half & 0x7c00) == 0x7c00) & 0x7f800000;
        uint32_t is_nan = mask_if(magnitude > (0x7c00u << 13));
        return bit_cast<float>((bits | sign | is_nan) & ~(is_nan & 0x80000000));
    }

    static SIM_INLINE uint16_t encode(float value) {
        uint32_t bits = bit_cast<uint32_t>(value);
        uint32_t sign = (bits >> 16) & 0x8000;
        bits &= 0x7fffffff;
        // Normal numbers: round to even by adding slightly less than half a unit. A carry may go up to infinity.
        uint32_t normal = (bits - ((127u - 15) << 23) + 0xfff + ((bits >> 13) & 1)) >> 13;
        // For numbers below 2^-14, the result is a multiple of 2^-24. Floats from 0.5 to 1 have the spacing 2^-24. So
        // adding 0.5 rounds the number to such a multiple.
        uint32_t small = bit_cast<uint32_t>(bit_cast<float>(bits) + 0.5f) - 0x3f000000;
        uint32_t is_small = mask_if(bits < 0x38800000), is_large = mask_if(bits >= 0x47800000);
        uint32_t is_nan = mask_if(bits > 0x7f800000);
        uint32_t result = (small & is_small) | (normal & ~is_small);
        result = (result & ~is_large) | (infinity & is_large) | sign;
        return static_cast<uint16_t>((result & ~is_nan) | (nan & is_nan));
    }

    SIM_OUTLINE float to_float(uint16_t half) { return decode(half); }
    SIM_OUTLINE uint16_t from_float(float value) { return encode(value); }
};

struct BF16 {
    static constexpr bool product_fits_float = false;  // a product's exponent can be below a float's
    static constexpr uint16_t nan = 0x7fff, infinity = 0x7f80, largest = 0x7f7f, one = 0x3f80;

    static SIM_INLINE float decode(uint16_t bits) { return bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

    static SIM_INLINE uint16_t encode(float value) {
        uint32_t bits = bit_cast<uint32_t>(value);
        uint32_t is_nan = mask_if((bits & 0x7fffffff) > 0x7f800000);
        uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
        return static_cast<uint16_t>((rounded & ~is_nan) | (nan & is_nan));
    }

    static SIM_INLINE float to_float(uint16_t bits) { return decode(bits); }
    static SIM_INLINE uint16_t from_float(float value) { return encode(value); }
};

template <typename Format>
SIM_INLINE uint16_t small_from_double(double value) {
    return Format::encode(round_to_odd(value));
}

// Other rounding modes: round to nearest, then step back by one unit if that went in the wrong direction.
template <typename Format>
inline uint16_t small_from_double(double value, Rounding mode) {
    uint16_t bits = small_from_double<Format>(value);
    double rounded = static_cast<double>(Format::decode(bits));
    if (mode == Rounding::nearest || value != value || rounded == value) return bits;
    bool negative = bits & 0x8000;
    bool is_above = rounded > value;
    bool want_below = mode == Rounding::down || (mode == Rounding::zero && !negative);
    if (is_above == want_below) {
        // Bit patterns of one sign are ordered by magnitude. One step below plus zero is the smallest negative number.
        if ((bits & 0x7fff) == 0) return want_below ? 0x8001 : 0x0001;
        return bits + (want_below == negative ? 1 : -1);
    }
    return bits;
}

// Converts an integer to a 16-bit floating-point number. A 64-bit integer may not fit into a double, so it is rounded
// twice: first to a double, then to 16 bits. The first rounding is to odd, so that the second one gives the correct
// result.
template <typename Format, typename Integer>
inline uint16_t small_from_integer(Integer value, Rounding mode) {
    constexpr int low_bits = sizeof(Integer) < 8 ? 0 : 32;
    Integer high = low_bits ? value >> low_bits : 0;
    double upper = static_cast<double>(high) * 4294967296.0;
    double lower = static_cast<double>(low_bits ? value & static_cast<Integer>(0xffffffff) : value);
    return small_from_double<Format>(add_to_odd(upper, lower), mode);
}

// float -> integer as on a GPU: rounds, saturates; NaN gives 0 (or the sign bit for 64-bit results).
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
    double limit = static_cast<double>(static_cast<uint64_t>(1) << (digits - 1)) * 2;  // the largest integer + 1
    if (value >= limit) return most;
    if (value < (is_signed ? -limit : 0.0)) return least;
    return static_cast<Integer>(value);
}

}  // namespace sim
