// The types of cuda_fp8.h, cuda_fp6.h and cuda_fp4.h.
#pragma once

#include <stdint.h>

#include <type_traits>

#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "sim/narrow_float.h"

typedef unsigned char __nv_fp8_storage_t;
typedef unsigned short __nv_fp8x2_storage_t;
typedef unsigned int __nv_fp8x4_storage_t;
enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE };
enum cudaRoundMode { cudaRoundNearest, cudaRoundZero, cudaRoundPosInf, cudaRoundMinInf };

namespace sim {

// One narrow number. Constructors convert by value as CUDA's do: saturating and to nearest; powers of two round up.
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
    // Converts a 64-bit integer to a double, rounded to odd: the last bit is set if the conversion is inexact. The
    // conversion to the narrow format is then the only rounding.
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

// Two or four values in one word. The first is in the lowest bits, and each next one is `Stride` bits higher.
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

// Conversions of numbers of a width (fp4, fp6, fp8) from and to float, double, half, bfloat16 and pairs. `first` and
// `second` are CUDA's parameters after the number: the `kind`, and how to round or saturate, from which `saturates` and
// `to_nearest` follow. The kind is Zero if it is 0, and else One.
#define SIM_NARROW_CONVERSIONS(width, stride, Zero, One, First, first, Second, second, saturates, to_nearest)      \
    namespace sim {                                                                                                \
    SIM_INLINE float decode_##width(unsigned x, __nv_##width##_interpretation_t kind) {                            \
        return kind ? One::decode(x & 0xff) : Zero::decode(x & 0xff);                                              \
    }                                                                                                              \
    }                                                                                                              \
    SIM_INLINE __nv_##width##_storage_t __nv_cvt_float_to_##width(float x, First first, Second second) {           \
        return static_cast<__nv_##width##_storage_t>(kind ? ::sim::One::encode(x, saturates, to_nearest)           \
                                                          : ::sim::Zero::encode(x, saturates, to_nearest));        \
    }                                                                                                              \
    SIM_INLINE __nv_##width##_storage_t __nv_cvt_double_to_##width(double x, First first, Second second) {         \
        return static_cast<__nv_##width##_storage_t>(kind ? ::sim::One::encode_double(x, saturates, to_nearest)    \
                                                          : ::sim::Zero::encode_double(x, saturates, to_nearest)); \
    }                                                                                                              \
    SIM_INLINE __nv_##width##_storage_t __nv_cvt_halfraw_to_##width(__half_raw x, First first, Second second) {    \
        return __nv_cvt_float_to_##width(__half2float(__half(x)), first, second);                                  \
    }                                                                                                              \
    SIM_INLINE __nv_##width##_storage_t __nv_cvt_bfloat16raw_to_##width(__nv_bfloat16_raw x, First first,          \
                                                                        Second second) {                           \
        return __nv_cvt_float_to_##width(__bfloat162float(__nv_bfloat16(x)), first, second);                       \
    }                                                                                                              \
    SIM_INLINE __nv_##width##x2_storage_t __nv_cvt_float2_to_##width##x2(float2 x, First first, Second second) {   \
        return static_cast<__nv_##width##x2_storage_t>(__nv_cvt_float_to_##width(x.x, first, second) |             \
                                                       __nv_cvt_float_to_##width(x.y, first, second) << stride);   \
    }                                                                                                              \
    SIM_INLINE __nv_##width##x2_storage_t __nv_cvt_double2_to_##width##x2(double2 x, First first, Second second) { \
        return static_cast<__nv_##width##x2_storage_t>(__nv_cvt_double_to_##width(x.x, first, second) |            \
                                                       __nv_cvt_double_to_##width(x.y, first, second) << stride);  \
    }                                                                                                              \
    SIM_INLINE __nv_##width##x2_storage_t __nv_cvt_halfraw2_to_##width##x2(__half2_raw x, First first,             \
                                                                           Second second) {                        \
        return __nv_cvt_float2_to_##width##x2(__half22float2(__half2(x)), first, second);                          \
    }                                                                                                              \
    SIM_INLINE __nv_##width##x2_storage_t __nv_cvt_bfloat16raw2_to_##width##x2(__nv_bfloat162_raw x, First first,  \
                                                                               Second second) {                    \
        return __nv_cvt_float2_to_##width##x2(__bfloat1622float2(__nv_bfloat162(x)), first, second);               \
    }                                                                                                              \
    SIM_INLINE __half_raw __nv_cvt_##width##_to_halfraw(__nv_##width##_storage_t x,                                \
                                                        __nv_##width##_interpretation_t kind) {                    \
        return __float2half(::sim::decode_##width(x, kind));                                                       \
    }                                                                                                              \
    SIM_INLINE __half2_raw __nv_cvt_##width##x2_to_halfraw2(__nv_##width##x2_storage_t x,                          \
                                                            __nv_##width##_interpretation_t kind) {                \
        return __half2(__float2half(::sim::decode_##width(x, kind)),                                               \
                       __float2half(::sim::decode_##width(static_cast<unsigned>(x) >> stride, kind)));             \
    }
