// Device math: CUDA's additions to the C library. cuda_runtime.h includes this file.
//
// Rounded results (__fadd_rz, __float2int_rn, ...) are exact. The fast intrinsics (__expf, __sinf, ...) follow the
// hardware's algorithm step by step, so they lose accuracy where a GPU does. For example, __expf(x) first rounds x *
// log2(e), and __sinf(x) first rounds x / (2 pi), so both are inaccurate for large |x|.
//
// Names that a C library declares, or may declare in the future (__expf, rsqrtf, sinpif, ...), are renamed by macros,
// because a function of the same name would conflict with the declaration. The macros take no arguments, so that a
// program may use such a name for a function of its own in a namespace or a class, and may take its address.
#pragma once

#include <cstdint>
// Undefine this macro of libstdc++, so that <math.h> does not include the special functions of C++17 (std::beta, ...).
// They would triple the size of this header.
#undef _GLIBCXX_USE_STD_SPEC_FUNCS
#include <math.h>
#include <stdlib.h>

#include "sim/small_float.h"
#include "vector_functions.h"

// ------------------------------------------------------------------------------------------------- bits of numbers

SIM_INLINE int __float_as_int(float a) { return ::sim::bit_cast<int>(a); }
SIM_INLINE unsigned int __float_as_uint(float a) { return ::sim::bit_cast<unsigned int>(a); }
SIM_INLINE float __int_as_float(int a) { return ::sim::bit_cast<float>(a); }
SIM_INLINE float __uint_as_float(unsigned int a) { return ::sim::bit_cast<float>(a); }
SIM_INLINE long long __double_as_longlong(double a) { return ::sim::bit_cast<long long>(a); }
SIM_INLINE double __longlong_as_double(long long a) { return ::sim::bit_cast<double>(a); }
SIM_INLINE int __double2loint(double a) { return static_cast<int>(::sim::bit_cast<uint64_t>(a)); }
SIM_INLINE int __double2hiint(double a) { return static_cast<int>(::sim::bit_cast<uint64_t>(a) >> 32); }
SIM_INLINE double __hiloint2double(int high, int low) {
    return ::sim::bit_cast<double>(static_cast<uint64_t>(static_cast<uint32_t>(high)) << 32 |
                                   static_cast<uint32_t>(low));
}

// ---------------------------------------------------------------------------------------------- minimum and maximum

// CUDA's overloads of min and max, including those for a signed and an unsigned argument. For floats, the number wins
// over NaN, as with fmaxf.
#define SIM_MIN_MAX(Result, A, B)                                                                                 \
    SIM_INLINE Result min(A a, B b) {                                                                             \
        return static_cast<Result>(a) < static_cast<Result>(b) ? static_cast<Result>(a) : static_cast<Result>(b); \
    }                                                                                                             \
    SIM_INLINE Result max(A a, B b) {                                                                             \
        return static_cast<Result>(a) > static_cast<Result>(b) ? static_cast<Result>(a) : static_cast<Result>(b); \
    }
#define SIM_MIN_MAX_INTEGER(Integer)                                  \
    SIM_MIN_MAX(Integer, Integer, Integer)                            \
    SIM_MIN_MAX(unsigned Integer, unsigned Integer, unsigned Integer) \
    SIM_MIN_MAX(unsigned Integer, Integer, unsigned Integer)          \
    SIM_MIN_MAX(unsigned Integer, unsigned Integer, Integer)
SIM_MIN_MAX_INTEGER(int)
SIM_MIN_MAX_INTEGER(long)
SIM_MIN_MAX_INTEGER(long long)
#undef SIM_MIN_MAX_INTEGER
#undef SIM_MIN_MAX
SIM_INLINE float min(float a, float b) { return fminf(a, b); }
SIM_INLINE float max(float a, float b) { return fmaxf(a, b); }
SIM_INLINE double min(double a, double b) { return fmin(a, b); }
SIM_INLINE double max(double a, double b) { return fmax(a, b); }
SIM_INLINE double min(float a, double b) { return fmin(static_cast<double>(a), b); }
SIM_INLINE double max(float a, double b) { return fmax(static_cast<double>(a), b); }
SIM_INLINE double min(double a, float b) { return fmin(a, static_cast<double>(b)); }
SIM_INLINE double max(double a, float b) { return fmax(a, static_cast<double>(b)); }

SIM_INLINE unsigned int umin(unsigned int a, unsigned int b) { return a < b ? a : b; }
SIM_INLINE unsigned int umax(unsigned int a, unsigned int b) { return a > b ? a : b; }
SIM_INLINE long long llmin(long long a, long long b) { return a < b ? a : b; }
SIM_INLINE long long llmax(long long a, long long b) { return a > b ? a : b; }
SIM_INLINE unsigned long long ullmin(unsigned long long a, unsigned long long b) { return a < b ? a : b; }
SIM_INLINE unsigned long long ullmax(unsigned long long a, unsigned long long b) { return a > b ? a : b; }

// -------------------------------------------------------------------------------- functions that C does not have

#define rsqrt sim_math_rsqrt
#define rsqrtf sim_math_rsqrtf
#define rcbrt sim_math_rcbrt
#define rcbrtf sim_math_rcbrtf
#define exp10 sim_math_exp10
#define exp10f sim_math_exp10f
#define sinpi sim_math_sinpi
#define sinpif sim_math_sinpif
#define cospi sim_math_cospi
#define cospif sim_math_cospif
#define sincos sim_math_sincos
#define sincosf sim_math_sincosf
#define sincospi sim_math_sincospi
#define sincospif sim_math_sincospif
#define normcdf sim_math_normcdf
#define normcdff sim_math_normcdff
#define erfcinv sim_math_erfcinv
#define erfcinvf sim_math_erfcinvf
#define erfinv sim_math_erfinv
#define erfinvf sim_math_erfinvf
#define normcdfinv sim_math_normcdfinv
#define normcdfinvf sim_math_normcdfinvf
#define norm3df sim_math_norm3df
#define norm4df sim_math_norm4df
#define rnorm3df sim_math_rnorm3df
#define rnorm4df sim_math_rnorm4df
#define rhypotf sim_math_rhypotf
#define fdividef sim_math_fdividef

// The two forms for a float, rsqrt(float) and rsqrtf: the result for a double, rounded.
#define SIM_FLOAT_FORMS(name)                                                                   \
    SIM_INLINE float name(float a) { return static_cast<float>(name(static_cast<double>(a))); } \
    SIM_INLINE float name##f(float a) { return name(a); }
SIM_INLINE double rsqrt(double a) { return 1.0 / ::sqrt(a); }
SIM_FLOAT_FORMS(rsqrt)
SIM_INLINE double rcbrt(double a) { return 1.0 / ::cbrt(a); }
SIM_FLOAT_FORMS(rcbrt)
SIM_INLINE double exp10(double a) { return ::pow(10.0, a); }
SIM_FLOAT_FORMS(exp10)

// sin and cos of pi * a: a is reduced exactly, so sinpi(1e6 + 0.5) is right.
inline double sinpi(double a) {
    double turns = a - 2.0 * ::rint(a * 0.5);
    return ::sin(turns * 3.14159265358979323846);
}
inline double cospi(double a) {
    double turns = a - 2.0 * ::rint(a * 0.5);
    return ::cos(turns * 3.14159265358979323846);
}
SIM_FLOAT_FORMS(sinpi)
SIM_FLOAT_FORMS(cospi)

// The stores are here rather than in the C library, so that the checks see them.
SIM_INLINE void sincos(double a, double* sine, double* cosine) {
    *sine = ::sin(a);
    *cosine = ::cos(a);
}
SIM_INLINE void sincosf(float a, float* sine, float* cosine) {
    *sine = ::sinf(a);
    *cosine = ::cosf(a);
}
SIM_INLINE void sincos(float a, float* sine, float* cosine) { sincosf(a, sine, cosine); }
SIM_INLINE void sincospi(double a, double* sine, double* cosine) {
    *sine = sinpi(a);
    *cosine = cospi(a);
}
SIM_INLINE void sincospif(float a, float* sine, float* cosine) {
    *sine = sinpif(a);
    *cosine = cospif(a);
}
SIM_INLINE void sincospi(float a, float* sine, float* cosine) { sincospif(a, sine, cosine); }
SIM_INLINE double normcdf(double a) { return 0.5 * ::erfc(a * -0.70710678118654752440); }
SIM_FLOAT_FORMS(normcdf)

// Inverses of erfc, erf and normcdf. Halley's method starts at the approximation 26.2.22 of Abramowitz and Stegun,
// Handbook of Mathematical Functions, whose error is below 0.003.
inline double erfcinv(double a) {
    if (!(a > 0.0 && a < 2.0)) return a == 0.0 ? HUGE_VAL : a == 2.0 ? -HUGE_VAL : NAN;
    double tail = a < 1.0 ? a : 2.0 - a, t = ::sqrt(-2.0 * ::log(0.5 * tail));
    double x = 0.70710678118654752440 * (t - (2.30753 + t * 0.27061) / (1.0 + t * (0.99229 + t * 0.04481)));
    for (int step = 0; step < 3; ++step) {
        double error = (::erfc(x) - tail) / (1.12837916709551257390 * ::exp(-x * x));  // 2 / sqrt(pi)
        x += error / (1.0 - x * error);
    }
    return a < 1.0 ? x : -x;
}
inline double erfinv(double a) {
    if (!(::fabs(a) < 0.5)) return a < 0.0 ? -erfcinv(1.0 + a) : erfcinv(1.0 - a);
    double x = 0.88622692545275801365 * a;  // sqrt(pi) / 2
    for (int step = 0; step < 4; ++step) {
        double error = (::erf(x) - a) / (1.12837916709551257390 * ::exp(-x * x));
        x -= error / (1.0 + x * error);
    }
    return x;
}
SIM_INLINE double normcdfinv(double a) { return -1.41421356237309504880 * erfcinv(2.0 * a); }
SIM_FLOAT_FORMS(erfcinv)
SIM_FLOAT_FORMS(erfinv)
SIM_FLOAT_FORMS(normcdfinv)
#undef SIM_FLOAT_FORMS
SIM_INLINE float norm4df(float a, float b, float c, float d) {
    return static_cast<float>(
        ::sqrt(static_cast<double>(a) * static_cast<double>(a) + static_cast<double>(b) * static_cast<double>(b) +
               static_cast<double>(c) * static_cast<double>(c) + static_cast<double>(d) * static_cast<double>(d)));
}
SIM_INLINE float norm3df(float a, float b, float c) { return norm4df(a, b, c, 0.0f); }
SIM_INLINE float rnorm3df(float a, float b, float c) { return 1.0f / norm3df(a, b, c); }
SIM_INLINE float rnorm4df(float a, float b, float c, float d) { return 1.0f / norm4df(a, b, c, d); }
SIM_INLINE float rhypotf(float a, float b) { return 1.0f / norm3df(a, b, 0.0f); }
SIM_INLINE float fdividef(float a, float b) { return a / b; }

// ------------------------------------------------------------------------------------------------- fast intrinsics

#define __expf sim_math___expf
#define __exp10f sim_math___exp10f
#define __logf sim_math___logf
#define __log2f sim_math___log2f
#define __log10f sim_math___log10f
#define __powf sim_math___powf
#define __sinf sim_math___sinf
#define __cosf sim_math___cosf
#define __tanf sim_math___tanf
#define __tanhf sim_math___tanhf
#define __sincosf sim_math___sincosf
#define __fdividef sim_math___fdividef
#define __saturatef sim_math___saturatef

SIM_INLINE float __expf(float a) { return ::exp2f(a * 1.442695041f); }    // the product is rounded first
SIM_INLINE float __exp10f(float a) { return ::exp2f(a * 3.321928095f); }  // a * log2(10)
SIM_INLINE float __log2f(float a) { return ::log2f(a); }                  // lg2.approx
SIM_INLINE float __logf(float a) { return ::log2f(a) * 0.693147181f; }    // log2(a) * ln(2)
SIM_INLINE float __log10f(float a) { return ::log2f(a) * 0.301029996f; }  // log2(a) * log10(2)
SIM_INLINE float __powf(float a, float b) { return ::exp2f(b * ::log2f(a)); }
SIM_INLINE float __tanhf(float a) { return ::tanhf(a); }  // tanh.approx
// A GPU's special function unit takes the angle in units of 2 pi: x / (2 pi), rounded to float.
SIM_INLINE float __sinf(float a) { return static_cast<float>(sinpi(2.0 * static_cast<double>(a * 0.159154943f))); }
SIM_INLINE float __cosf(float a) { return static_cast<float>(cospi(2.0 * static_cast<double>(a * 0.159154943f))); }
SIM_INLINE float __tanf(float a) { return __sinf(a) / __cosf(a); }
SIM_INLINE void __sincosf(float a, float* sine, float* cosine) {
    *sine = __sinf(a);
    *cosine = __cosf(a);
}
// The division multiplies by the reciprocal, which is zero for a divisor above 2^126.
SIM_INLINE float __fdividef(float a, float b) {
    float magnitude = ::fabsf(b);
    return magnitude > 8.507059173e37f ? a * (b < 0 ? -0.0f : 0.0f) : a / b;
}
SIM_INLINE float __saturatef(float a) { return a > 0.0f ? (a < 1.0f ? a : 1.0f) : 0.0f; }

namespace sim {

// Rounding of an exact (or odd-rounded) double to float in one of the four modes.
inline float round_to_float(double value, Rounding mode) {
    if (mode == Rounding::nearest) return static_cast<float>(value);
    float rounded = static_cast<float>(value);
    if (value != value || static_cast<double>(rounded) == value) return rounded;
    bool is_above = static_cast<double>(rounded) > value;
    bool want_below = mode == Rounding::down || (mode == Rounding::zero && value > 0);
    return is_above == want_below ? ::nextafterf(rounded, want_below ? -HUGE_VALF : HUGE_VALF) : rounded;
}
SIM_INLINE double product(float a, float b) { return static_cast<double>(a) * static_cast<double>(b); }
SIM_INLINE float rounded_sum(double a, float b, Rounding mode) {
    return round_to_float(add_to_odd(a, static_cast<double>(b)), mode);
}
template <typename Integer>
inline float float_from_integer(Integer value, Rounding mode) {
    constexpr int low_bits = sizeof(Integer) < 8 ? 0 : 32;
    double high = static_cast<double>(low_bits ? value >> low_bits : 0) * 4294967296.0;
    double low = static_cast<double>(low_bits ? value & static_cast<Integer>(0xffffffff) : value);
    return round_to_float(add_to_odd(high, low), mode);
}

}  // namespace sim

// Arithmetic with a named rounding: __fadd_rn, __fmul_rz, __fmaf_ru, ...
#define SIM_ROUNDED_FLOAT(suffix, mode)                                                                                \
    SIM_INLINE float __fadd##suffix(float a, float b) { return ::sim::rounded_sum(static_cast<double>(a), b, mode); }  \
    SIM_INLINE float __fsub##suffix(float a, float b) { return ::sim::rounded_sum(static_cast<double>(a), -b, mode); } \
    SIM_INLINE float __fmul##suffix(float a, float b) { return ::sim::round_to_float(::sim::product(a, b), mode); }    \
    SIM_INLINE float __fmaf##suffix(float a, float b, float c) {                                                       \
        return ::sim::rounded_sum(::sim::product(a, b), c, mode);                                                      \
    }                                                                                                                  \
    SIM_INLINE float __fdiv##suffix(float a, float b) {                                                                \
        return ::sim::round_to_float(static_cast<double>(a) / static_cast<double>(b), mode);                           \
    }                                                                                                                  \
    SIM_INLINE float __frcp##suffix(float a) { return __fdiv##suffix(1.0f, a); }                                       \
    SIM_INLINE float __fsqrt##suffix(float a) { return ::sim::round_to_float(::sqrt(static_cast<double>(a)), mode); }  \
    SIM_INLINE float __double2float##suffix(double a) { return ::sim::round_to_float(a, mode); }
SIM_ROUNDED_FLOAT(_rn, ::sim::Rounding::nearest)
SIM_ROUNDED_FLOAT(_rz, ::sim::Rounding::zero)
SIM_ROUNDED_FLOAT(_rd, ::sim::Rounding::down)
SIM_ROUNDED_FLOAT(_ru, ::sim::Rounding::up)
#undef SIM_ROUNDED_FLOAT
SIM_INLINE float __frsqrt_rn(float a) { return rsqrt(a); }
SIM_INLINE double __dadd_rn(double a, double b) { return a + b; }
SIM_INLINE double __dsub_rn(double a, double b) { return a - b; }
SIM_INLINE double __dmul_rn(double a, double b) { return a * b; }
SIM_INLINE double __ddiv_rn(double a, double b) { return a / b; }
SIM_INLINE double __drcp_rn(double a) { return 1.0 / a; }
SIM_INLINE double __dsqrt_rn(double a) { return ::sqrt(a); }
SIM_INLINE double __fma_rn(double a, double b, double c) { return ::fma(a, b, c); }

// __int2float_rn, __float2int_rz, ...: conversions to an integer saturate, and NaN becomes 0 (INT64_MIN for 64 bits).
#define SIM_INTEGER_CONVERSION(word, Integer, suffix, mode)                      \
    SIM_INLINE float __##word##2float##suffix(Integer a) {                       \
        SIM_COUNTS(conversion);                                                  \
        return ::sim::float_from_integer(a, mode);                               \
    }                                                                            \
    SIM_INLINE Integer __float2##word##suffix(float a) {                         \
        SIM_COUNTS(conversion);                                                  \
        return ::sim::saturating_integer<Integer>(static_cast<double>(a), mode); \
    }                                                                            \
    SIM_INLINE Integer __double2##word##suffix(double a) {                       \
        SIM_COUNTS(conversion);                                                  \
        return ::sim::saturating_integer<Integer>(a, mode);                      \
    }
#define SIM_INTEGER_CONVERSIONS(word, Integer)                           \
    SIM_INTEGER_CONVERSION(word, Integer, _rn, ::sim::Rounding::nearest) \
    SIM_INTEGER_CONVERSION(word, Integer, _rz, ::sim::Rounding::zero)    \
    SIM_INTEGER_CONVERSION(word, Integer, _rd, ::sim::Rounding::down)    \
    SIM_INTEGER_CONVERSION(word, Integer, _ru, ::sim::Rounding::up)      \
    SIM_INLINE double __##word##2double_rn(Integer a) {                  \
        SIM_COUNTS(conversion);                                          \
        return static_cast<double>(a);                                   \
    }
SIM_INTEGER_CONVERSIONS(int, int)
SIM_INTEGER_CONVERSIONS(uint, unsigned int)
SIM_INTEGER_CONVERSIONS(ll, long long)
SIM_INTEGER_CONVERSIONS(ull, unsigned long long)
#undef SIM_INTEGER_CONVERSIONS
#undef SIM_INTEGER_CONVERSION

namespace sim {

// Converts an integer to double in one of the four rounding modes. A 32-bit integer is exact in a double. For a 64-bit
// integer, the nearest double may be above the integer although the mode rounds down, or below although it rounds up.
// Then the result is the next double in the direction of the mode.
template <typename Integer>
SIM_INLINE double double_from_integer(Integer a, Rounding mode) {
    SIM_COUNTS(conversion);
    double nearest = static_cast<double>(a);
    __int128 rest = static_cast<__int128>(a) - static_cast<__int128>(nearest);
    if (mode == Rounding::zero) mode = a < 0 ? Rounding::up : Rounding::down;
    if (rest < 0 && mode == Rounding::down) return ::nextafter(nearest, -HUGE_VAL);
    if (rest > 0 && mode == Rounding::up) return ::nextafter(nearest, HUGE_VAL);
    return nearest;
}

}  // namespace sim

#define SIM_TO_DOUBLE(word, Integer)                                                                                   \
    SIM_INLINE double __##word##2double_rz(Integer a) { return ::sim::double_from_integer(a, ::sim::Rounding::zero); } \
    SIM_INLINE double __##word##2double_rd(Integer a) { return ::sim::double_from_integer(a, ::sim::Rounding::down); } \
    SIM_INLINE double __##word##2double_ru(Integer a) { return ::sim::double_from_integer(a, ::sim::Rounding::up); }
SIM_TO_DOUBLE(ll, long long)
SIM_TO_DOUBLE(ull, unsigned long long)
#undef SIM_TO_DOUBLE

// ------------------------------------------------------------------------------------------------------- integers

SIM_INLINE int __clz(int a) { return a == 0 ? 32 : __builtin_clz(static_cast<unsigned int>(a)); }
SIM_INLINE int __clzll(long long a) { return a == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(a)); }
SIM_INLINE int __popc(unsigned int a) { return __builtin_popcount(a); }
SIM_INLINE int __popcll(unsigned long long a) { return __builtin_popcountll(a); }
SIM_INLINE int __ffs(int a) { return __builtin_ffs(a); }
SIM_INLINE int __ffsll(long long a) { return __builtin_ffsll(a); }
SIM_INLINE unsigned int __brev(unsigned int a) {
    a = (a >> 1 & 0x55555555u) | (a & 0x55555555u) << 1;
    a = (a >> 2 & 0x33333333u) | (a & 0x33333333u) << 2;
    a = (a >> 4 & 0x0f0f0f0fu) | (a & 0x0f0f0f0fu) << 4;
    return __builtin_bswap32(a);
}
SIM_INLINE unsigned long long __brevll(unsigned long long a) {
    return static_cast<unsigned long long>(__brev(static_cast<unsigned int>(a))) << 32 |
           __brev(static_cast<unsigned int>(a >> 32));
}
// Returns the position of the n-th set bit of mask, counted from position base: upward for n > 0, downward for n < 0.
// Returns 0xffffffff if there is none.
inline unsigned int __fns(unsigned int mask, unsigned int base, int offset) {
    int step = offset < 0 ? -1 : 1, wanted = offset < 0 ? -offset : offset == 0 ? 1 : offset;
    if (offset == 0) return mask >> base & 1 ? base : 0xffffffffu;
    for (int bit = static_cast<int>(base); bit >= 0 && bit < 32; bit += step) {
        if ((mask >> bit & 1) && --wanted == 0) return static_cast<unsigned int>(bit);
    }
    return 0xffffffffu;
}

SIM_INLINE int __mul24(int a, int b) {
    return static_cast<int>(static_cast<long long>(static_cast<int>(static_cast<unsigned>(a) << 8) >> 8) *
                            (static_cast<int>(static_cast<unsigned>(b) << 8) >> 8));
}
SIM_INLINE unsigned int __umul24(unsigned int a, unsigned int b) { return (a & 0xffffffu) * (b & 0xffffffu); }
SIM_INLINE int __mulhi(int a, int b) { return static_cast<int>(static_cast<long long>(a) * b >> 32); }
SIM_INLINE unsigned int __umulhi(unsigned int a, unsigned int b) {
    return static_cast<unsigned int>(static_cast<unsigned long long>(a) * b >> 32);
}
SIM_INLINE long long __mul64hi(long long a, long long b) {
    return static_cast<long long>(static_cast<__int128>(a) * b >> 64);
}
SIM_INLINE unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
    return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}
SIM_INLINE unsigned int __sad(int a, int b, unsigned int c) {
    return c + (a > b ? static_cast<unsigned>(a) - static_cast<unsigned>(b)
                      : static_cast<unsigned>(b) - static_cast<unsigned>(a));
}
SIM_INLINE unsigned int __usad(unsigned int a, unsigned int b, unsigned int c) { return c + (a > b ? a - b : b - a); }
// Averages: rounded down, and (r) rounded up.
SIM_INLINE int __hadd(int a, int b) { return static_cast<int>((static_cast<long long>(a) + b) >> 1); }
SIM_INLINE int __rhadd(int a, int b) { return static_cast<int>((static_cast<long long>(a) + b + 1) >> 1); }
SIM_INLINE unsigned int __uhadd(unsigned int a, unsigned int b) {
    return static_cast<unsigned int>((static_cast<unsigned long long>(a) + b) >> 1);
}
SIM_INLINE unsigned int __urhadd(unsigned int a, unsigned int b) {
    return static_cast<unsigned int>((static_cast<unsigned long long>(a) + b + 1) >> 1);
}

namespace sim {

// PTX's prmt: each nibble of the selector selects one of the 8 bytes of (b, a); its top bit replicates that byte's
// sign.
SIM_INLINE unsigned int permute_bytes(unsigned int a, unsigned int b, unsigned int selector) {
    uint64_t bytes = static_cast<uint64_t>(b) << 32 | a;
    unsigned int result = 0;
    for (int i = 0; i < 4; ++i) {
        unsigned int pick = selector >> (4 * i) & 0xf;
        unsigned int byte = bytes >> (8 * (pick & 7)) & 0xff;
        if (pick & 8) byte = byte & 0x80 ? 0xff : 0;
        result |= byte << (8 * i);
    }
    return result;
}

}  // namespace sim

// __byte_perm uses only three bits of each nibble: nvcc masks the selector.
SIM_INLINE unsigned int __byte_perm(unsigned int a, unsigned int b, unsigned int selector) {
    return ::sim::permute_bytes(a, b, selector & 0x7777);
}
SIM_INLINE unsigned int __funnelshift_l(unsigned int low, unsigned int high, unsigned int shift) {
    return static_cast<unsigned int>((static_cast<uint64_t>(high) << 32 | low) << (shift & 31) >> 32);
}
SIM_INLINE unsigned int __funnelshift_lc(unsigned int low, unsigned int high, unsigned int shift) {
    return shift >= 32 ? low : __funnelshift_l(low, high, shift);
}
SIM_INLINE unsigned int __funnelshift_r(unsigned int low, unsigned int high, unsigned int shift) {
    return static_cast<unsigned int>((static_cast<uint64_t>(high) << 32 | low) >> (shift & 31));
}
SIM_INLINE unsigned int __funnelshift_rc(unsigned int low, unsigned int high, unsigned int shift) {
    return shift >= 32 ? high : __funnelshift_r(low, high, shift);
}

// ------------------------------------------------------------------------------------- several integers in a word

namespace sim {

// The dot product of LANES packed integers, signed or unsigned according to the lane's type.
template <typename A, typename B, int LANES, typename Sum>
SIM_INLINE Sum dot(uint32_t a, uint32_t b, Sum sum, int shift_of_b = 0) {
    for (int i = 0; i < LANES; ++i) {
        A left = static_cast<A>(a >> (i * 8 * static_cast<int>(sizeof(A))));
        B right = static_cast<B>(b >> (shift_of_b + i * 8 * static_cast<int>(sizeof(B))));
        sum += static_cast<Sum>(left) * static_cast<Sum>(right);
    }
    return sum;
}

// Applies `function` to each lane of type Lane.
template <typename Lane, typename Function>
SIM_INLINE uint32_t each_lane(uint32_t a, uint32_t b, Function function) {
    constexpr int bits = 8 * static_cast<int>(sizeof(Lane));
    constexpr uint32_t mask = (1u << bits) - 1;
    uint32_t result = 0;
    for (int shift = 0; shift < 32; shift += bits) {
        int value =
            function(static_cast<int>(static_cast<Lane>(a >> shift)), static_cast<int>(static_cast<Lane>(b >> shift)));
        result |= (static_cast<uint32_t>(value) & mask) << shift;
    }
    return result;
}

}  // namespace sim

SIM_INLINE int __dp4a(int a, int b, int c) {
    return ::sim::dot<int8_t, int8_t, 4, int>(static_cast<uint32_t>(a), static_cast<uint32_t>(b), c);
}
SIM_INLINE unsigned int __dp4a(unsigned int a, unsigned int b, unsigned int c) {
    return ::sim::dot<uint8_t, uint8_t, 4, unsigned int>(a, b, c);
}
SIM_INLINE int __dp4a(char4 a, char4 b, int c) { return c + a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }
SIM_INLINE unsigned int __dp4a(uchar4 a, uchar4 b, unsigned int c) {
    return c + static_cast<unsigned>(a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w);
}
SIM_INLINE int __dp2a_lo(int a, int b, int c) {
    return ::sim::dot<int16_t, int8_t, 2, int>(static_cast<uint32_t>(a), static_cast<uint32_t>(b), c);
}
SIM_INLINE int __dp2a_hi(int a, int b, int c) {
    return ::sim::dot<int16_t, int8_t, 2, int>(static_cast<uint32_t>(a), static_cast<uint32_t>(b), c, 16);
}
SIM_INLINE unsigned int __dp2a_lo(unsigned int a, unsigned int b, unsigned int c) {
    return ::sim::dot<uint16_t, uint8_t, 2, unsigned int>(a, b, c);
}
SIM_INLINE unsigned int __dp2a_hi(unsigned int a, unsigned int b, unsigned int c) {
    return ::sim::dot<uint16_t, uint8_t, 2, unsigned int>(a, b, c, 16);
}

// __vadd2 works on two 16-bit lanes, __vadd4 on four bytes. Functions with ss or us saturate.
namespace sim {
template <typename T>
constexpr int clamped(int value) {
    constexpr int low = static_cast<T>(-1) < 0 ? -(1 << (8 * sizeof(T) - 1)) : 0;
    constexpr int high = low ? -low - 1 : (1 << 8 * sizeof(T)) - 1;
    return value < low ? low : value > high ? high : value;
}
}  // namespace sim
#define SIM_LANES_OF(name, Type, expression)                                                 \
    SIM_INLINE unsigned int name(unsigned int left, unsigned int right) {                    \
        typedef Type Lane;                                                                   \
        return ::sim::each_lane<Lane>(left, right, [](int a, int b) { return expression; }); \
    }
#define SIM_SIGNED(name, expression)           \
    SIM_LANES_OF(name##2, int16_t, expression) \
    SIM_LANES_OF(name##4, int8_t, expression)
#define SIM_UNSIGNED(name, expression)          \
    SIM_LANES_OF(name##2, uint16_t, expression) \
    SIM_LANES_OF(name##4, uint8_t, expression)
// The forms for signed lanes (s) and unsigned ones (u).
#define SIM_BOTH(name, expression)  \
    SIM_SIGNED(name##s, expression) \
    SIM_UNSIGNED(name##u, expression)
SIM_UNSIGNED(__vadd, a + b)
SIM_UNSIGNED(__vsub, a - b)
SIM_SIGNED(__vaddss, ::sim::clamped<Lane>(a + b))
SIM_UNSIGNED(__vaddus, ::sim::clamped<Lane>(a + b))
SIM_SIGNED(__vsubss, ::sim::clamped<Lane>(a - b))
SIM_UNSIGNED(__vsubus, ::sim::clamped<Lane>(a - b))
SIM_BOTH(__vmax, a > b ? a : b)
SIM_BOTH(__vmin, a < b ? a : b)
SIM_BOTH(__vabsdiff, a > b ? a - b : b - a)
SIM_SIGNED(__vavgs, (a + b + (a + b >= 0)) >> 1)
SIM_UNSIGNED(__vavgu, (a + b + 1) >> 1)
SIM_UNSIGNED(__vhaddu, (a + b) >> 1)
SIM_UNSIGNED(__vcmpeq, a == b ? -1 : 0)
SIM_UNSIGNED(__vcmpne, a != b ? -1 : 0)
SIM_BOTH(__vcmpgt, a > b ? -1 : 0)
SIM_BOTH(__vcmplt, a < b ? -1 : 0)
SIM_BOTH(__vcmpge, a >= b ? -1 : 0)
SIM_BOTH(__vcmple, a <= b ? -1 : 0)
SIM_UNSIGNED(__vseteq, a == b)
SIM_UNSIGNED(__vsetne, a != b)
SIM_BOTH(__vsetgt, a > b)
SIM_BOTH(__vsetlt, a < b)
SIM_BOTH(__vsetge, a >= b)
SIM_BOTH(__vsetle, a <= b)
#undef SIM_BOTH
#undef SIM_UNSIGNED
#undef SIM_SIGNED
#undef SIM_LANES_OF
SIM_INLINE unsigned int __vneg2(unsigned int value) { return __vsub2(0, value); }
SIM_INLINE unsigned int __vneg4(unsigned int value) { return __vsub4(0, value); }
SIM_INLINE unsigned int __vnegss2(unsigned int value) { return __vsubss2(0, value); }
SIM_INLINE unsigned int __vnegss4(unsigned int value) { return __vsubss4(0, value); }
SIM_INLINE unsigned int __vabs2(unsigned int value) { return __vabsdiffs2(value, 0); }
SIM_INLINE unsigned int __vabs4(unsigned int value) { return __vabsdiffs4(value, 0); }
SIM_INLINE unsigned int __vsadu4(unsigned int a, unsigned int b) { return __dp4a(__vabsdiffu4(a, b), 0x01010101u, 0u); }
SIM_INLINE unsigned int __vsads4(unsigned int a, unsigned int b) { return __dp4a(__vabsdiffs4(a, b), 0x01010101u, 0u); }
SIM_INLINE unsigned int __vsadu2(unsigned int a, unsigned int b) {
    unsigned int both = __vabsdiffu2(a, b);
    return (both & 0xffffu) + (both >> 16);
}
SIM_INLINE unsigned int __vsads2(unsigned int a, unsigned int b) {
    unsigned int both = __vabsdiffs2(a, b);
    return (both & 0xffffu) + (both >> 16);
}
SIM_INLINE unsigned int __vabsss2(unsigned int value) { return __vmaxs2(value, __vnegss2(value)); }
SIM_INLINE unsigned int __vabsss4(unsigned int value) { return __vmaxs4(value, __vnegss4(value)); }
