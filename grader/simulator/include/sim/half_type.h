// The types of 16-bit floating-point numbers and of their pairs, half and bfloat16, with their conversions.
//
// cuda_fp16.h and cuda_bf16.h each include this file (there is no include guard on purpose) after setting these macros:
// - SIM_HALF, SIM_HALF2: the type, __half or __nv_bfloat16, and the type of a pair, __half2 or __nv_bfloat162.
// - SIM_RAW, SIM_RAW2: the structures of bits, __half_raw and __half2_raw, for example.
// - SIM_OTHER_HALF: the other type of 16 bits.
// - SIM_FORMAT: the conversions of the type, sim::F16 or sim::BF16 (sim/small_float.h).
// - SIM_HALF_NAME(before, after): a function's name, with `half` or `bfloat16` in between.
// - SIM_ATOMIC_HALF and SIM_ATOMIC_HALF2: the names of libsim's atomic operations on the type and on a pair.

struct alignas(2) SIM_RAW {
    unsigned short x;
};
struct alignas(4) SIM_RAW2 {
    unsigned short x, y;
};

struct alignas(2) SIM_HALF {
    uint16_t bits;

    SIM_HALF() = default;
    constexpr SIM_HALF(const SIM_RAW& raw) : bits(raw.x) {}
    explicit SIM_HALF(const SIM_OTHER_HALF value);  // defined by cuda_bf16.h
    SIM_INLINE SIM_HALF(float value) : bits(SIM_FORMAT::from_float(value)) {}
    SIM_INLINE SIM_HALF(double value) : bits(::sim::small_from_double<SIM_FORMAT>(value)) {}
    SIM_INLINE SIM_HALF(short value) : SIM_HALF(static_cast<float>(value)) { SIM_COUNTS(conversion); }
    SIM_INLINE SIM_HALF(unsigned short value) : SIM_HALF(static_cast<float>(value)) { SIM_COUNTS(conversion); }
    SIM_INLINE SIM_HALF(int value) : SIM_HALF(static_cast<double>(value)) { SIM_COUNTS(conversion); }
    SIM_INLINE SIM_HALF(unsigned int value) : SIM_HALF(static_cast<double>(value)) { SIM_COUNTS(conversion); }
    SIM_INLINE SIM_HALF(long value) : SIM_HALF(static_cast<long long>(value)) {}
    SIM_INLINE SIM_HALF(unsigned long value) : SIM_HALF(static_cast<unsigned long long>(value)) {}
    SIM_INLINE SIM_HALF(long long value)
        : bits(::sim::small_from_integer<SIM_FORMAT>(value, ::sim::Rounding::nearest)) {
        SIM_COUNTS(conversion);
    }
    SIM_INLINE SIM_HALF(unsigned long long value)
        : bits(::sim::small_from_integer<SIM_FORMAT>(value, ::sim::Rounding::nearest)) {
        SIM_COUNTS(conversion);
    }

    SIM_INLINE SIM_HALF& operator=(const SIM_RAW& raw) {
        bits = raw.x;
        return *this;
    }
    SIM_INLINE volatile SIM_HALF& operator=(const SIM_RAW& raw) volatile {
        bits = raw.x;
        return *this;
    }
    SIM_INLINE SIM_HALF& operator=(float value) { return *this = SIM_HALF(value); }
    SIM_INLINE SIM_HALF& operator=(double value) { return *this = SIM_HALF(value); }
    SIM_INLINE SIM_HALF& operator=(short value) { return *this = SIM_HALF(value); }
    SIM_INLINE SIM_HALF& operator=(unsigned short value) { return *this = SIM_HALF(value); }
    SIM_INLINE SIM_HALF& operator=(int value) { return *this = SIM_HALF(value); }
    SIM_INLINE SIM_HALF& operator=(unsigned int value) { return *this = SIM_HALF(value); }
    SIM_INLINE SIM_HALF& operator=(long long value) { return *this = SIM_HALF(value); }
    SIM_INLINE SIM_HALF& operator=(unsigned long long value) { return *this = SIM_HALF(value); }

    SIM_INLINE operator SIM_RAW() const { return SIM_RAW{bits}; }
    SIM_INLINE operator SIM_RAW() const volatile { return SIM_RAW{bits}; }
    SIM_INLINE operator float() const { return SIM_FORMAT::to_float(bits); }
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
        return ::sim::saturating_integer<Integer>(SIM_FORMAT::to_float(bits), ::sim::Rounding::zero);
    }
};

// Copied as one 4-byte word (see vector_types.h), so a pair is one access.
struct alignas(4) SIM_HALF2 {
    SIM_HALF x, y;

    SIM_HALF2() = default;
    SIM_INLINE SIM_HALF2(const SIM_HALF& low, const SIM_HALF& high) : x(low), y(high) {}
    SIM_INLINE SIM_HALF2(const SIM_HALF2& other) { word() = other.word(); }
    SIM_INLINE SIM_HALF2(const SIM_RAW2& raw) : x(SIM_RAW{raw.x}), y(SIM_RAW{raw.y}) {}
    SIM_INLINE SIM_HALF2& operator=(const SIM_HALF2& other) {
        word() = other.word();
        return *this;
    }
    // A template, so that an argument {} selects the other overload, for a pair.
    template <typename Raw, typename = std::enable_if_t<std::is_same<Raw, SIM_RAW2>::value>>
    SIM_INLINE SIM_HALF2& operator=(const Raw& raw) {
        return *this = SIM_HALF2(raw);
    }
    SIM_INLINE operator SIM_RAW2() const { return SIM_RAW2{x.bits, y.bits}; }

  private:
    typedef uint32_t __attribute__((may_alias)) Word;
    SIM_INLINE Word& word() { return *reinterpret_cast<Word*>(this); }
    SIM_INLINE const Word& word() const { return *reinterpret_cast<const Word*>(this); }
};

#include "sim/half_functions.h"

// --------------------------------------------------------------------------------------- conversions and packing

SIM_INLINE SIM_HALF SIM_HALF_NAME(__float2, )(float a) { return SIM_HALF(a); }
SIM_INLINE SIM_HALF SIM_HALF_NAME(__float2, _rn)(float a) { return SIM_HALF(a); }
SIM_INLINE SIM_HALF SIM_HALF_NAME(__float2, _rz)(float a) {
    return SIM_RAW{::sim::small_from_double<SIM_FORMAT>(a, ::sim::Rounding::zero)};
}
SIM_INLINE SIM_HALF SIM_HALF_NAME(__float2, _rd)(float a) {
    return SIM_RAW{::sim::small_from_double<SIM_FORMAT>(a, ::sim::Rounding::down)};
}
SIM_INLINE SIM_HALF SIM_HALF_NAME(__float2, _ru)(float a) {
    return SIM_RAW{::sim::small_from_double<SIM_FORMAT>(a, ::sim::Rounding::up)};
}
SIM_INLINE SIM_HALF SIM_HALF_NAME(__double2, )(double a) { return SIM_HALF(a); }
SIM_INLINE float SIM_HALF_NAME(__, 2float)(SIM_HALF a) { return SIM_FORMAT::to_float(a.bits); }

SIM_INLINE SIM_HALF2 SIM_HALF_NAME(make_, 2)(SIM_HALF x, SIM_HALF y) { return SIM_HALF2(x, y); }
SIM_INLINE SIM_HALF2 SIM_HALF_NAME(__halves2, 2)(SIM_HALF low, SIM_HALF high) { return SIM_HALF2(low, high); }
SIM_INLINE SIM_HALF2 SIM_HALF_NAME(SIM_HALF_NAME(__, 2), 2)(SIM_HALF a) { return SIM_HALF2(a, a); }
SIM_INLINE SIM_HALF2 SIM_HALF_NAME(__float2, 2_rn)(float a) { return SIM_HALF2(SIM_HALF(a), SIM_HALF(a)); }
SIM_INLINE SIM_HALF2 SIM_HALF_NAME(__floats2, 2_rn)(float a, float b) { return SIM_HALF2(SIM_HALF(a), SIM_HALF(b)); }
SIM_INLINE SIM_HALF2 SIM_HALF_NAME(__float22, 2_rn)(float2 a) { return SIM_HALF2(SIM_HALF(a.x), SIM_HALF(a.y)); }
SIM_INLINE float2 SIM_HALF_NAME(__, 22float2)(SIM_HALF2 a) {
    return make_float2(SIM_FORMAT::to_float(a.x.bits), SIM_FORMAT::to_float(a.y.bits));
}
SIM_INLINE SIM_HALF SIM_HALF_NAME(__low2, )(SIM_HALF2 a) { return a.x; }
SIM_INLINE SIM_HALF SIM_HALF_NAME(__high2, )(SIM_HALF2 a) { return a.y; }
SIM_INLINE SIM_HALF2 SIM_HALF_NAME(__low2, 2)(SIM_HALF2 a) { return SIM_HALF2(a.x, a.x); }
SIM_INLINE SIM_HALF2 SIM_HALF_NAME(__high2, 2)(SIM_HALF2 a) { return SIM_HALF2(a.y, a.y); }
SIM_INLINE SIM_HALF2 SIM_HALF_NAME(__lows2, 2)(SIM_HALF2 a, SIM_HALF2 b) { return SIM_HALF2(a.x, b.x); }
SIM_INLINE SIM_HALF2 SIM_HALF_NAME(__highs2, 2)(SIM_HALF2 a, SIM_HALF2 b) { return SIM_HALF2(a.y, b.y); }

SIM_INLINE short SIM_HALF_NAME(__, _as_short)(SIM_HALF a) { return static_cast<short>(a.bits); }
SIM_INLINE unsigned short SIM_HALF_NAME(__, _as_ushort)(SIM_HALF a) { return a.bits; }
SIM_INLINE SIM_HALF SIM_HALF_NAME(__short_as_, )(short bits) { return SIM_RAW{static_cast<unsigned short>(bits)}; }
SIM_INLINE SIM_HALF SIM_HALF_NAME(__ushort_as_, )(unsigned short bits) { return SIM_RAW{bits}; }
