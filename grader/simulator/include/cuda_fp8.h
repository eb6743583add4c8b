// The two 8-bit floating-point formats: storage, and conversions from and to float and half.
//
//   e4m3   1 sign, 4 exponent, 3 mantissa bits   largest 448, no infinity, NaN is 0x7f
//   e5m2   1 sign, 5 exponent, 2 mantissa bits   largest 57344
//
// Values that are too large become the largest number (satfinite), as in the constructors of CUDA's types.
#pragma once

#include <math.h>
#include <stdint.h>

#include "cuda_fp16.h"

typedef unsigned char __nv_fp8_storage_t;
enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE };
enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 };

namespace sim {

template <int exponent_bits, int mantissa_bits>
struct Fp8 {
    static constexpr int bias = (1 << (exponent_bits - 1)) - 1;
    static constexpr bool has_infinity = exponent_bits == 5;
    static constexpr unsigned largest = has_infinity ? 0x7b : 0x7e;

    static float value(unsigned bits) {
        unsigned exponent = (bits & 0x7f) >> mantissa_bits, mantissa = bits & ((1u << mantissa_bits) - 1);
        float sign = bits & 0x80 ? -1.0f : 1.0f;
        if ((bits & 0x7f) > largest) {
            return has_infinity && mantissa == 0 ? sign * HUGE_VALF : __builtin_nanf("");
        }
        if (exponent == 0) return sign * ldexpf(static_cast<float>(mantissa), 1 - bias - mantissa_bits);
        float significand = static_cast<float>(mantissa + (1u << mantissa_bits));
        return sign * ldexpf(significand, static_cast<int>(exponent) - bias - mantissa_bits);
    }

    // Rounds to nearest even by search: the formats have few numbers, and bit patterns are in numeric order.
    static unsigned char bits(float x) {
        if (x != x) return 0x7f;
        unsigned sign = signbit(x) ? 0x80 : 0;
        float size = fabsf(x);
        unsigned low = 0, high = largest;
        while (low < high) {  // the largest that is not above
            unsigned middle = (low + high + 1) / 2;
            if (value(middle) <= size) {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        if (low < largest) {
            float below = size - value(low), above = value(low + 1) - size;
            if (above < below || (above == below && low % 2)) ++low;
        }
        return static_cast<unsigned char>(sign | low);
    }
};

}  // namespace sim

#define SIM_FP8(name, exponent, mantissa)                                                      \
    struct name {                                                                              \
        __nv_fp8_storage_t __x;                                                                \
        name() = default;                                                                      \
        explicit name(float x) : __x(::sim::Fp8<exponent, mantissa>::bits(x)) {}               \
        explicit name(double x) : name(static_cast<float>(x)) {}                               \
        explicit name(int x) : name(static_cast<float>(x)) {}                                  \
        explicit name(__half x) : name(__half2float(x)) {}                                     \
        explicit operator float() const { return ::sim::Fp8<exponent, mantissa>::value(__x); } \
        explicit operator double() const { return static_cast<float>(*this); }                 \
        explicit operator __half() const { return __float2half(static_cast<float>(*this)); }   \
    };
SIM_FP8(__nv_fp8_e4m3, 4, 3)
SIM_FP8(__nv_fp8_e5m2, 5, 2)
#undef SIM_FP8

inline __nv_fp8_storage_t __nv_cvt_float_to_fp8(float x, __nv_saturation_t, __nv_fp8_interpretation_t kind) {
    return kind == __NV_E4M3 ? ::sim::Fp8<4, 3>::bits(x) : ::sim::Fp8<5, 2>::bits(x);
}
inline __half __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t x, __nv_fp8_interpretation_t kind) {
    return __float2half(kind == __NV_E4M3 ? ::sim::Fp8<4, 3>::value(x) : ::sim::Fp8<5, 2>::value(x));
}
