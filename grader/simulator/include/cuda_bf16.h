// __nv_bfloat16 and the pair __nv_bfloat162. A bfloat16 is the upper half of a float, so it has the range of float and
// 8 bits of precision. The file is organized like cuda_fp16.h. The arithmetic is in sim/half_functions.h.
#pragma once

#include <type_traits>

#include "cuda_fp16.h"

struct alignas(2) __nv_bfloat16_raw {
    unsigned short x;
};
struct alignas(4) __nv_bfloat162_raw {
    unsigned short x, y;
};

struct alignas(2) __nv_bfloat16 {
    uint16_t bits;

    __nv_bfloat16() = default;
    constexpr __nv_bfloat16(const __nv_bfloat16_raw& raw) : bits(raw.x) {}
    explicit SIM_INLINE __nv_bfloat16(const __half value) : bits(::sim::BF16::from_float(__half2float(value))) {}
    SIM_INLINE __nv_bfloat16(float value) : bits(::sim::BF16::from_float(value)) {}
    SIM_INLINE __nv_bfloat16(double value) : bits(::sim::small_from_double<::sim::BF16>(value)) {}
    SIM_INLINE __nv_bfloat16(short value) : __nv_bfloat16(static_cast<float>(value)) { SIM_COUNTS(conversion); }
    SIM_INLINE __nv_bfloat16(unsigned short value) : __nv_bfloat16(static_cast<float>(value)) {
        SIM_COUNTS(conversion);
    }
    SIM_INLINE __nv_bfloat16(int value) : __nv_bfloat16(static_cast<double>(value)) { SIM_COUNTS(conversion); }
    SIM_INLINE __nv_bfloat16(unsigned int value) : __nv_bfloat16(static_cast<double>(value)) { SIM_COUNTS(conversion); }
    SIM_INLINE __nv_bfloat16(long value) : __nv_bfloat16(static_cast<long long>(value)) {}
    SIM_INLINE __nv_bfloat16(unsigned long value) : __nv_bfloat16(static_cast<unsigned long long>(value)) {}
    SIM_INLINE __nv_bfloat16(long long value)
        : bits(::sim::small_from_integer<::sim::BF16>(value, ::sim::Rounding::nearest)) {
        SIM_COUNTS(conversion);
    }
    SIM_INLINE __nv_bfloat16(unsigned long long value)
        : bits(::sim::small_from_integer<::sim::BF16>(value, ::sim::Rounding::nearest)) {
        SIM_COUNTS(conversion);
    }

    SIM_INLINE __nv_bfloat16& operator=(const __nv_bfloat16_raw& raw) {
        bits = raw.x;
        return *this;
    }
    SIM_INLINE volatile __nv_bfloat16& operator=(const __nv_bfloat16_raw& raw) volatile {
        bits = raw.x;
        return *this;
    }
    SIM_INLINE __nv_bfloat16& operator=(float value) { return *this = __nv_bfloat16(value); }
    SIM_INLINE __nv_bfloat16& operator=(double value) { return *this = __nv_bfloat16(value); }
    SIM_INLINE __nv_bfloat16& operator=(short value) { return *this = __nv_bfloat16(value); }
    SIM_INLINE __nv_bfloat16& operator=(unsigned short value) { return *this = __nv_bfloat16(value); }
    SIM_INLINE __nv_bfloat16& operator=(int value) { return *this = __nv_bfloat16(value); }
    SIM_INLINE __nv_bfloat16& operator=(unsigned int value) { return *this = __nv_bfloat16(value); }
    SIM_INLINE __nv_bfloat16& operator=(long long value) { return *this = __nv_bfloat16(value); }
    SIM_INLINE __nv_bfloat16& operator=(unsigned long long value) { return *this = __nv_bfloat16(value); }

    SIM_INLINE operator __nv_bfloat16_raw() const { return __nv_bfloat16_raw{bits}; }
    SIM_INLINE operator __nv_bfloat16_raw() const volatile { return __nv_bfloat16_raw{bits}; }
    SIM_INLINE operator float() const { return ::sim::BF16::to_float(bits); }
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
        return ::sim::saturating_integer<Integer>(::sim::BF16::to_float(bits), ::sim::Rounding::zero);
    }
};

// Copied as one 4-byte word (see vector_types.h), so a pair is one access.
struct alignas(4) __nv_bfloat162 {
    __nv_bfloat16 x, y;

    __nv_bfloat162() = default;
    SIM_INLINE __nv_bfloat162(const __nv_bfloat16& low, const __nv_bfloat16& high) : x(low), y(high) {}
    SIM_INLINE __nv_bfloat162(const __nv_bfloat162& other) { word() = other.word(); }
    SIM_INLINE __nv_bfloat162(const __nv_bfloat162_raw& raw)
        : x(__nv_bfloat16_raw{raw.x}), y(__nv_bfloat16_raw{raw.y}) {}
    SIM_INLINE __nv_bfloat162& operator=(const __nv_bfloat162& other) {
        word() = other.word();
        return *this;
    }
    // A template, so that an argument {} selects the other overload, of type __nv_bfloat162.
    template <typename Raw, typename = std::enable_if_t<std::is_same<Raw, __nv_bfloat162_raw>::value>>
    SIM_INLINE __nv_bfloat162& operator=(const Raw& raw) {
        return *this = __nv_bfloat162(raw);
    }
    SIM_INLINE operator __nv_bfloat162_raw() const { return __nv_bfloat162_raw{x.bits, y.bits}; }

  private:
    typedef uint32_t __attribute__((may_alias)) Word;
    SIM_INLINE Word& word() { return *reinterpret_cast<Word*>(this); }
    SIM_INLINE const Word& word() const { return *reinterpret_cast<const Word*>(this); }
};

typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

#define SIM_HALF __nv_bfloat16
#define SIM_HALF2 __nv_bfloat162
#define SIM_FORMAT ::sim::BF16
#define SIM_TO_HALF(word, mode) __##word##2bfloat16##mode
#define SIM_FROM_HALF(word, mode) __bfloat162##word##mode
#define SIM_ATOMIC_HALF atomic_bf16
#define SIM_ATOMIC_HALF2 atomic_bf16x2
#include "sim/half_functions.h"
#undef SIM_HALF
#undef SIM_HALF2
#undef SIM_FORMAT
#undef SIM_TO_HALF
#undef SIM_FROM_HALF
#undef SIM_ATOMIC_HALF
#undef SIM_ATOMIC_HALF2

// --------------------------------------------------------------------------------------- conversions and packing

SIM_INLINE __nv_bfloat16 __float2bfloat16(float a) { return __nv_bfloat16(a); }
SIM_INLINE __nv_bfloat16 __float2bfloat16_rn(float a) { return __nv_bfloat16(a); }
SIM_INLINE __nv_bfloat16 __float2bfloat16_rz(float a) {
    return __nv_bfloat16_raw{::sim::small_from_double<::sim::BF16>(a, ::sim::Rounding::zero)};
}
SIM_INLINE __nv_bfloat16 __float2bfloat16_rd(float a) {
    return __nv_bfloat16_raw{::sim::small_from_double<::sim::BF16>(a, ::sim::Rounding::down)};
}
SIM_INLINE __nv_bfloat16 __float2bfloat16_ru(float a) {
    return __nv_bfloat16_raw{::sim::small_from_double<::sim::BF16>(a, ::sim::Rounding::up)};
}
SIM_INLINE __nv_bfloat16 __double2bfloat16(double a) { return __nv_bfloat16(a); }
SIM_INLINE float __bfloat162float(__nv_bfloat16 a) { return ::sim::BF16::to_float(a.bits); }

SIM_INLINE __nv_bfloat162 make_bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return __nv_bfloat162(x, y); }
SIM_INLINE __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 low, __nv_bfloat16 high) {
    return __nv_bfloat162(low, high);
}
SIM_INLINE __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 a) { return __nv_bfloat162(a, a); }
SIM_INLINE __nv_bfloat162 __float2bfloat162_rn(float a) { return __nv_bfloat162(__nv_bfloat16(a), __nv_bfloat16(a)); }
SIM_INLINE __nv_bfloat162 __floats2bfloat162_rn(float a, float b) {
    return __nv_bfloat162(__nv_bfloat16(a), __nv_bfloat16(b));
}
SIM_INLINE __nv_bfloat162 __float22bfloat162_rn(float2 a) {
    return __nv_bfloat162(__nv_bfloat16(a.x), __nv_bfloat16(a.y));
}
SIM_INLINE float2 __bfloat1622float2(__nv_bfloat162 a) {
    return make_float2(__bfloat162float(a.x), __bfloat162float(a.y));
}
SIM_INLINE __nv_bfloat16 __low2bfloat16(__nv_bfloat162 a) { return a.x; }
SIM_INLINE __nv_bfloat16 __high2bfloat16(__nv_bfloat162 a) { return a.y; }
SIM_INLINE __nv_bfloat162 __low2bfloat162(__nv_bfloat162 a) { return __nv_bfloat162(a.x, a.x); }
SIM_INLINE __nv_bfloat162 __high2bfloat162(__nv_bfloat162 a) { return __nv_bfloat162(a.y, a.y); }
SIM_INLINE __nv_bfloat162 __lows2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b) { return __nv_bfloat162(a.x, b.x); }
SIM_INLINE __nv_bfloat162 __highs2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b) { return __nv_bfloat162(a.y, b.y); }

SIM_INLINE short __bfloat16_as_short(__nv_bfloat16 a) { return static_cast<short>(a.bits); }
SIM_INLINE unsigned short __bfloat16_as_ushort(__nv_bfloat16 a) { return a.bits; }
SIM_INLINE __nv_bfloat16 __short_as_bfloat16(short bits) {
    return __nv_bfloat16_raw{static_cast<unsigned short>(bits)};
}
SIM_INLINE __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) { return __nv_bfloat16_raw{bits}; }

#define CUDART_INF_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x7f80))
#define CUDART_NAN_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x7fff))
#define CUDART_MIN_DENORM_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x0001))
#define CUDART_MAX_NORMAL_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x7f7f))
#define CUDART_NEG_ZERO_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x8000))
#define CUDART_ZERO_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x0000))
#define CUDART_ONE_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x3f80))

SIM_INLINE __half::__half(const __nv_bfloat16 value) : bits(::sim::F16::from_float(__bfloat162float(value))) {}
