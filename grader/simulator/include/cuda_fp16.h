// half and half2: CUDA's 16-bit floating-point types, and their conversions. The parts shared with bfloat16, mainly the
// arithmetic, are in sim/half_functions.h.
//
// __half converts from and to every arithmetic type, as CUDA's does, with the same consequence: `h + 1.0f` is ambiguous
// and does not compile; write `__half2float(h) + 1.0f` or `h + __float2half(1.0f)`.
#pragma once

#include <type_traits>

#include "sim/atomics.h"
#include "sim/math.h"
#include "sim/small_float.h"
#include "vector_functions.h"

struct __nv_bfloat16;

struct alignas(2) __half_raw {
    unsigned short x;
};
struct alignas(4) __half2_raw {
    unsigned short x, y;
};

struct alignas(2) __half {
    uint16_t bits;

    __half() = default;
    constexpr __half(const __half_raw& raw) : bits(raw.x) {}
    explicit __half(const __nv_bfloat16 value);  // defined by cuda_bf16.h
    SIM_INLINE __half(float value) : bits(::sim::F16::from_float(value)) {}
    SIM_INLINE __half(double value) : bits(::sim::small_from_double<::sim::F16>(value)) {}
    SIM_INLINE __half(short value) : __half(static_cast<float>(value)) { SIM_COUNTS(conversion); }
    SIM_INLINE __half(unsigned short value) : __half(static_cast<float>(value)) { SIM_COUNTS(conversion); }
    SIM_INLINE __half(int value) : __half(static_cast<double>(value)) { SIM_COUNTS(conversion); }
    SIM_INLINE __half(unsigned int value) : __half(static_cast<double>(value)) { SIM_COUNTS(conversion); }
    SIM_INLINE __half(long value) : __half(static_cast<long long>(value)) {}
    SIM_INLINE __half(unsigned long value) : __half(static_cast<unsigned long long>(value)) {}
    SIM_INLINE __half(long long value) : bits(::sim::small_from_integer<::sim::F16>(value, ::sim::Rounding::nearest)) {
        SIM_COUNTS(conversion);
    }
    SIM_INLINE __half(unsigned long long value)
        : bits(::sim::small_from_integer<::sim::F16>(value, ::sim::Rounding::nearest)) {
        SIM_COUNTS(conversion);
    }

    SIM_INLINE __half& operator=(const __half_raw& raw) {
        bits = raw.x;
        return *this;
    }
    SIM_INLINE volatile __half& operator=(const __half_raw& raw) volatile {
        bits = raw.x;
        return *this;
    }
    SIM_INLINE __half& operator=(float value) { return *this = __half(value); }
    SIM_INLINE __half& operator=(double value) { return *this = __half(value); }
    SIM_INLINE __half& operator=(short value) { return *this = __half(value); }
    SIM_INLINE __half& operator=(unsigned short value) { return *this = __half(value); }
    SIM_INLINE __half& operator=(int value) { return *this = __half(value); }
    SIM_INLINE __half& operator=(unsigned int value) { return *this = __half(value); }
    SIM_INLINE __half& operator=(long long value) { return *this = __half(value); }
    SIM_INLINE __half& operator=(unsigned long long value) { return *this = __half(value); }

    SIM_INLINE operator __half_raw() const { return __half_raw{bits}; }
    SIM_INLINE operator __half_raw() const volatile { return __half_raw{bits}; }
    SIM_INLINE operator float() const { return ::sim::F16::to_float(bits); }
    constexpr operator bool() const { return (bits & 0x7fff) != 0; }
    SIM_INLINE operator signed char() const { return to_integer<signed char>(); }
    SIM_INLINE operator unsigned char() const { return to_integer<unsigned char>(); }
    SIM_INLINE operator char() const { return to_integer<char>(); }
    SIM_INLINE operator short() const { return to_integer<short>(); }
    SIM_INLINE operator unsigned short() const { return to_integer<unsigned short>(); }
    SIM_INLINE operator int() const { return to_integer<int>(); }
    SIM_INLINE operator unsigned int() const { return to_integer<unsigned int>(); }
    SIM_INLINE operator long() const { return to_integer<long>(); }
    SIM_INLINE operator unsigned long() const { return to_integer<unsigned long>(); }
    SIM_INLINE operator long long() const { return to_integer<long long>(); }
    SIM_INLINE operator unsigned long long() const { return to_integer<unsigned long long>(); }

  private:
    template <typename Integer>
    SIM_INLINE Integer to_integer() const {
        SIM_COUNTS(conversion);
        return ::sim::saturating_integer<Integer>(::sim::F16::to_float(bits), ::sim::Rounding::zero);
    }
};

// Copied as one 4-byte word (see vector_types.h), so a pair is one access.
struct alignas(4) __half2 {
    __half x, y;

    __half2() = default;
    SIM_INLINE __half2(const __half& low, const __half& high) : x(low), y(high) {}
    SIM_INLINE __half2(const __half2& other) { word() = other.word(); }
    SIM_INLINE __half2(const __half2_raw& raw) : x(__half_raw{raw.x}), y(__half_raw{raw.y}) {}
    SIM_INLINE __half2& operator=(const __half2& other) {
        word() = other.word();
        return *this;
    }
    // A template, so that an argument {} selects the other overload, of type __half2.
    template <typename Raw, typename = std::enable_if_t<std::is_same<Raw, __half2_raw>::value>>
    SIM_INLINE __half2& operator=(const Raw& raw) {
        return *this = __half2(raw);
    }
    SIM_INLINE operator __half2_raw() const { return __half2_raw{x.bits, y.bits}; }

  private:
    typedef uint32_t __attribute__((may_alias)) Word;
    SIM_INLINE Word& word() { return *reinterpret_cast<Word*>(this); }
    SIM_INLINE const Word& word() const { return *reinterpret_cast<const Word*>(this); }
};

typedef __half half;
typedef __half2 half2;
typedef __half nv_half;
typedef __half2 nv_half2;
typedef __half __nv_half;
typedef __half2 __nv_half2;

#define SIM_HALF __half
#define SIM_HALF2 __half2
#define SIM_FORMAT ::sim::F16
#define SIM_TO_HALF(word, mode) __##word##2half##mode
#define SIM_FROM_HALF(word, mode) __half2##word##mode
#define SIM_ATOMIC_HALF atomic_f16
#define SIM_ATOMIC_HALF2 atomic_f16x2
#include "sim/half_functions.h"
#undef SIM_HALF
#undef SIM_HALF2
#undef SIM_FORMAT
#undef SIM_TO_HALF
#undef SIM_FROM_HALF
#undef SIM_ATOMIC_HALF
#undef SIM_ATOMIC_HALF2

// --------------------------------------------------------------------------------------- conversions and packing

SIM_INLINE __half __float2half(float a) { return __half(a); }
SIM_INLINE __half __float2half_rn(float a) { return __half(a); }
SIM_INLINE __half __float2half_rz(float a) {
    return __half_raw{::sim::small_from_double<::sim::F16>(a, ::sim::Rounding::zero)};
}
SIM_INLINE __half __float2half_rd(float a) {
    return __half_raw{::sim::small_from_double<::sim::F16>(a, ::sim::Rounding::down)};
}
SIM_INLINE __half __float2half_ru(float a) {
    return __half_raw{::sim::small_from_double<::sim::F16>(a, ::sim::Rounding::up)};
}
SIM_INLINE __half __double2half(double a) { return __half(a); }
SIM_INLINE float __half2float(__half a) { return ::sim::F16::to_float(a.bits); }

SIM_INLINE __half2 make_half2(__half x, __half y) { return __half2(x, y); }
SIM_INLINE __half2 __halves2half2(__half low, __half high) { return __half2(low, high); }
SIM_INLINE __half2 __half2half2(__half a) { return __half2(a, a); }
SIM_INLINE __half2 __float2half2_rn(float a) { return __half2(__half(a), __half(a)); }
SIM_INLINE __half2 __floats2half2_rn(float a, float b) { return __half2(__half(a), __half(b)); }
SIM_INLINE __half2 __float22half2_rn(float2 a) { return __half2(__half(a.x), __half(a.y)); }
SIM_INLINE float2 __half22float2(__half2 a) { return make_float2(__half2float(a.x), __half2float(a.y)); }
SIM_INLINE __half __low2half(__half2 a) { return a.x; }
SIM_INLINE __half __high2half(__half2 a) { return a.y; }
SIM_INLINE __half2 __low2half2(__half2 a) { return __half2(a.x, a.x); }
SIM_INLINE __half2 __high2half2(__half2 a) { return __half2(a.y, a.y); }
SIM_INLINE __half2 __lows2half2(__half2 a, __half2 b) { return __half2(a.x, b.x); }
SIM_INLINE __half2 __highs2half2(__half2 a, __half2 b) { return __half2(a.y, b.y); }

SIM_INLINE short __half_as_short(__half a) { return static_cast<short>(a.bits); }
SIM_INLINE unsigned short __half_as_ushort(__half a) { return a.bits; }
SIM_INLINE __half __short_as_half(short bits) { return __half_raw{static_cast<unsigned short>(bits)}; }
SIM_INLINE __half __ushort_as_half(unsigned short bits) { return __half_raw{bits}; }

#define CUDART_INF_FP16 __ushort_as_half(static_cast<unsigned short>(0x7c00))
#define CUDART_NAN_FP16 __ushort_as_half(static_cast<unsigned short>(0x7fff))
#define CUDART_MIN_DENORM_FP16 __ushort_as_half(static_cast<unsigned short>(0x0001))
#define CUDART_MAX_NORMAL_FP16 __ushort_as_half(static_cast<unsigned short>(0x7bff))
#define CUDART_NEG_ZERO_FP16 __ushort_as_half(static_cast<unsigned short>(0x8000))
#define CUDART_ZERO_FP16 __ushort_as_half(static_cast<unsigned short>(0x0000))
#define CUDART_ONE_FP16 __ushort_as_half(static_cast<unsigned short>(0x3c00))
