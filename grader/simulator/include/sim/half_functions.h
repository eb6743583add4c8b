// The intrinsics shared by half and bfloat16: __hadd, __hfma2, __hlt, hexp, ... CUDA's functions have the same names for
// both types. sim/half_type.h includes this file for each of them, with the macros that it describes.
//
// Every result is the exact one, rounded once to nearest even. Functions of a pair treat each half independently.

namespace sim {

SIM_INLINE float to_float(SIM_HALF a) { return SIM_FORMAT::decode(a.bits); }
SIM_INLINE double to_double(SIM_HALF a) { return static_cast<double>(SIM_FORMAT::decode(a.bits)); }
SIM_INLINE void set(SIM_HALF& a, float value) { a.bits = SIM_FORMAT::encode(value); }
SIM_INLINE void set(SIM_HALF& a, double value) { a.bits = small_from_double<SIM_FORMAT>(value); }

template <typename Value>
SIM_INLINE SIM_HALF SIM_JOIN(round_to_, SIM_HALF)(Value value) {
    SIM_HALF result;
    set(result, value);
    return result;
}
SIM_INLINE SIM_HALF SIM_JOIN(bits_to_, SIM_HALF)(unsigned bits) {
    SIM_HALF result;
    result.bits = static_cast<uint16_t>(bits);
    return result;
}

}  // namespace sim

#define SIM_ROUND ::sim::SIM_JOIN(round_to_, SIM_HALF)
#define SIM_FROM_BITS ::sim::SIM_JOIN(bits_to_, SIM_HALF)

// ---------------------------------------------------------------------------------------------------- arithmetic

// For sums, a float has enough bits that rounding twice equals rounding once. Other operations use double where
// bfloat16's wide exponent range needs it.
SIM_INLINE SIM_HALF __hadd(SIM_HALF a, SIM_HALF b) {
    SIM_COUNTS(1_operation);
    return SIM_ROUND(::sim::to_float(a) + ::sim::to_float(b));
}
SIM_INLINE SIM_HALF __hsub(SIM_HALF a, SIM_HALF b) {
    SIM_COUNTS(1_operation);
    return SIM_ROUND(::sim::to_float(a) - ::sim::to_float(b));
}
SIM_INLINE SIM_HALF __hmul(SIM_HALF a, SIM_HALF b) {
    SIM_COUNTS(1_operation);
    if (SIM_FORMAT::product_fits_float) return SIM_ROUND(::sim::to_float(a) * ::sim::to_float(b));
    return SIM_ROUND(::sim::to_double(a) * ::sim::to_double(b));
}
SIM_INLINE SIM_HALF __hdiv(SIM_HALF a, SIM_HALF b) {
    SIM_COUNTS(1_operation);
    return SIM_ROUND(::sim::to_double(a) / ::sim::to_double(b));
}
SIM_INLINE SIM_HALF __hfma(SIM_HALF a, SIM_HALF b, SIM_HALF c) {
    SIM_COUNTS(2_operations);
    // The product is exact.
    if (SIM_FORMAT::product_fits_float) {
        return SIM_ROUND(::sim::add_to_odd(::sim::to_float(a) * ::sim::to_float(b), ::sim::to_float(c)));
    }
    return SIM_ROUND(::sim::add_to_odd(::sim::to_double(a) * ::sim::to_double(b), ::sim::to_double(c)));
}
// The _rn forms forbid contraction into a fused multiply-add; nothing is contracted here.
SIM_INLINE SIM_HALF __hadd_rn(SIM_HALF a, SIM_HALF b) { return __hadd(a, b); }
SIM_INLINE SIM_HALF __hsub_rn(SIM_HALF a, SIM_HALF b) { return __hsub(a, b); }
SIM_INLINE SIM_HALF __hmul_rn(SIM_HALF a, SIM_HALF b) { return __hmul(a, b); }

// A NaN becomes the canonical NaN, as on an H200.
SIM_INLINE SIM_HALF __hneg(SIM_HALF a) {
    return SIM_FROM_BITS((a.bits & 0x7fff) > SIM_FORMAT::infinity ? SIM_FORMAT::nan : a.bits ^ 0x8000);
}
SIM_INLINE SIM_HALF __habs(SIM_HALF a) {
    unsigned short size = a.bits & 0x7fff;
    return SIM_FROM_BITS(size > SIM_FORMAT::infinity ? SIM_FORMAT::nan : size);
}

// ---------------------------------------------------------------------------------------------------- comparison

SIM_INLINE bool __hisnan(SIM_HALF a) { return (a.bits & 0x7fff) > SIM_FORMAT::infinity; }
SIM_INLINE int __hisinf(SIM_HALF a) {
    return (a.bits & 0x7fff) == SIM_FORMAT::infinity ? ((a.bits & 0x8000) ? -1 : 1) : 0;
}
SIM_INLINE bool __heq(SIM_HALF a, SIM_HALF b) { return ::sim::to_float(a) == ::sim::to_float(b); }
SIM_INLINE bool __hlt(SIM_HALF a, SIM_HALF b) { return ::sim::to_float(a) < ::sim::to_float(b); }
SIM_INLINE bool __hle(SIM_HALF a, SIM_HALF b) { return ::sim::to_float(a) <= ::sim::to_float(b); }
SIM_INLINE bool __hgt(SIM_HALF a, SIM_HALF b) { return ::sim::to_float(a) > ::sim::to_float(b); }
SIM_INLINE bool __hge(SIM_HALF a, SIM_HALF b) { return ::sim::to_float(a) >= ::sim::to_float(b); }
// Returns whether a and b differ; false if either is NaN. (operator!= is __hneu, which is true then.)
SIM_INLINE bool __hne(SIM_HALF a, SIM_HALF b) { return __hlt(a, b) || __hgt(a, b); }
// The u forms are true when either is NaN ("unordered").
SIM_INLINE bool __hequ(SIM_HALF a, SIM_HALF b) { return !__hne(a, b); }
SIM_INLINE bool __hneu(SIM_HALF a, SIM_HALF b) { return !__heq(a, b); }
SIM_INLINE bool __hltu(SIM_HALF a, SIM_HALF b) { return !__hge(a, b); }
SIM_INLINE bool __hleu(SIM_HALF a, SIM_HALF b) { return !__hgt(a, b); }
SIM_INLINE bool __hgtu(SIM_HALF a, SIM_HALF b) { return !__hle(a, b); }
SIM_INLINE bool __hgeu(SIM_HALF a, SIM_HALF b) { return !__hlt(a, b); }

// If one operand is NaN, the result is the other one. +0 is greater than -0.
SIM_INLINE SIM_HALF __hmax(SIM_HALF a, SIM_HALF b) {
    if (__hisnan(a)) return __hisnan(b) ? SIM_FROM_BITS(SIM_FORMAT::nan) : b;
    if (__hisnan(b)) return a;
    if (__heq(a, b)) return SIM_FROM_BITS(a.bits & b.bits);
    return __hgt(a, b) ? a : b;
}
SIM_INLINE SIM_HALF __hmin(SIM_HALF a, SIM_HALF b) {
    if (__hisnan(a)) return __hisnan(b) ? SIM_FROM_BITS(SIM_FORMAT::nan) : b;
    if (__hisnan(b)) return a;
    if (__heq(a, b)) return SIM_FROM_BITS(a.bits | b.bits);
    return __hlt(a, b) ? a : b;
}
// The result is NaN if one operand is NaN.
SIM_INLINE SIM_HALF __hmax_nan(SIM_HALF a, SIM_HALF b) {
    return __hisnan(a) || __hisnan(b) ? SIM_FROM_BITS(SIM_FORMAT::nan) : __hmax(a, b);
}
SIM_INLINE SIM_HALF __hmin_nan(SIM_HALF a, SIM_HALF b) {
    return __hisnan(a) || __hisnan(b) ? SIM_FROM_BITS(SIM_FORMAT::nan) : __hmin(a, b);
}

namespace sim {
// Clamps to [0, 1]; NaN becomes +0.
SIM_INLINE SIM_HALF saturate(SIM_HALF a) {
    if (!(to_float(a) > 0.0f)) return SIM_FROM_BITS(0);
    return to_float(a) < 1.0f ? a : SIM_FROM_BITS(SIM_FORMAT::one);
}
// Returns max(a, +0); NaN stays NaN.
SIM_INLINE SIM_HALF relu(SIM_HALF a) { return to_float(a) <= 0.0f ? SIM_FROM_BITS(0) : a; }
}  // namespace sim

SIM_INLINE SIM_HALF __hadd_sat(SIM_HALF a, SIM_HALF b) { return ::sim::saturate(__hadd(a, b)); }
SIM_INLINE SIM_HALF __hsub_sat(SIM_HALF a, SIM_HALF b) { return ::sim::saturate(__hsub(a, b)); }
SIM_INLINE SIM_HALF __hmul_sat(SIM_HALF a, SIM_HALF b) { return ::sim::saturate(__hmul(a, b)); }
SIM_INLINE SIM_HALF __hfma_sat(SIM_HALF a, SIM_HALF b, SIM_HALF c) { return ::sim::saturate(__hfma(a, b, c)); }
SIM_INLINE SIM_HALF __hfma_relu(SIM_HALF a, SIM_HALF b, SIM_HALF c) { return ::sim::relu(__hfma(a, b, c)); }

// ----------------------------------------------------------------------------------------------------- functions

// The function is computed in float and rounded. A GPU's hexp, hlog, ... may differ in the last bit.
SIM_INLINE SIM_HALF hceil(SIM_HALF a) { return SIM_ROUND(::ceilf(::sim::to_float(a))); }
SIM_INLINE SIM_HALF hfloor(SIM_HALF a) { return SIM_ROUND(::floorf(::sim::to_float(a))); }
SIM_INLINE SIM_HALF htrunc(SIM_HALF a) { return SIM_ROUND(::truncf(::sim::to_float(a))); }
SIM_INLINE SIM_HALF hrint(SIM_HALF a) { return SIM_ROUND(::rintf(::sim::to_float(a))); }
SIM_INLINE SIM_HALF hsqrt(SIM_HALF a) {
    SIM_COUNTS(1_operation);
    return SIM_ROUND(::sqrt(::sim::to_double(a)));
}
SIM_INLINE SIM_HALF hrsqrt(SIM_HALF a) {
    SIM_COUNTS(2_operations);
    return SIM_ROUND(1.0 / ::sqrt(::sim::to_double(a)));
}
SIM_INLINE SIM_HALF hrcp(SIM_HALF a) {
    SIM_COUNTS(1_operation);
    return SIM_ROUND(1.0 / ::sim::to_double(a));
}
#define SIM_SPECIAL_FUNCTION(name, value)       \
    SIM_INLINE SIM_HALF name(SIM_HALF number) { \
        SIM_COUNTS(special_function);           \
        float a = ::sim::to_float(number);      \
        return SIM_ROUND(value);                \
    }
SIM_SPECIAL_FUNCTION(hexp, ::expf(a))
SIM_SPECIAL_FUNCTION(hexp2, ::exp2f(a))
SIM_SPECIAL_FUNCTION(hexp10, ::pow(10.0, static_cast<double>(a)))
SIM_SPECIAL_FUNCTION(hlog, ::logf(a))
SIM_SPECIAL_FUNCTION(hlog2, ::log2f(a))
SIM_SPECIAL_FUNCTION(hlog10, ::log10f(a))
SIM_SPECIAL_FUNCTION(hsin, ::sinf(a))
SIM_SPECIAL_FUNCTION(hcos, ::cosf(a))
SIM_SPECIAL_FUNCTION(htanh, ::tanhf(a))
#undef SIM_SPECIAL_FUNCTION
SIM_INLINE SIM_HALF htanh_approx(SIM_HALF a) { return htanh(a); }

// --------------------------------------------------------------------------------------------------------- pairs

#define SIM_PAIR_OF_1(pair, single) \
    SIM_INLINE SIM_HALF2 pair(SIM_HALF2 a) { return SIM_HALF2(single(a.x), single(a.y)); }
#define SIM_PAIR_OF_2(pair, single) \
    SIM_INLINE SIM_HALF2 pair(SIM_HALF2 a, SIM_HALF2 b) { return SIM_HALF2(single(a.x, b.x), single(a.y, b.y)); }
#define SIM_PAIR_OF_3(pair, single)                                     \
    SIM_INLINE SIM_HALF2 pair(SIM_HALF2 a, SIM_HALF2 b, SIM_HALF2 c) {  \
        return SIM_HALF2(single(a.x, b.x, c.x), single(a.y, b.y, c.y)); \
    }
SIM_PAIR_OF_2(__hadd2, __hadd)
SIM_PAIR_OF_2(__hsub2, __hsub)
SIM_PAIR_OF_2(__hmul2, __hmul)
SIM_PAIR_OF_2(__h2div, __hdiv)
SIM_PAIR_OF_2(__hadd2_rn, __hadd)
SIM_PAIR_OF_2(__hsub2_rn, __hsub)
SIM_PAIR_OF_2(__hmul2_rn, __hmul)
SIM_PAIR_OF_2(__hadd2_sat, __hadd_sat)
SIM_PAIR_OF_2(__hsub2_sat, __hsub_sat)
SIM_PAIR_OF_2(__hmul2_sat, __hmul_sat)
SIM_PAIR_OF_2(__hmax2, __hmax)
SIM_PAIR_OF_2(__hmin2, __hmin)
SIM_PAIR_OF_2(__hmax2_nan, __hmax_nan)
SIM_PAIR_OF_2(__hmin2_nan, __hmin_nan)
SIM_PAIR_OF_3(__hfma2, __hfma)
SIM_PAIR_OF_3(__hfma2_sat, __hfma_sat)
SIM_PAIR_OF_3(__hfma2_relu, __hfma_relu)
SIM_PAIR_OF_1(__hneg2, __hneg)
SIM_PAIR_OF_1(__habs2, __habs)
SIM_PAIR_OF_1(h2ceil, hceil)
SIM_PAIR_OF_1(h2floor, hfloor)
SIM_PAIR_OF_1(h2trunc, htrunc)
SIM_PAIR_OF_1(h2rint, hrint)
SIM_PAIR_OF_1(h2sqrt, hsqrt)
SIM_PAIR_OF_1(h2rsqrt, hrsqrt)
SIM_PAIR_OF_1(h2rcp, hrcp)
SIM_PAIR_OF_1(h2exp, hexp)
SIM_PAIR_OF_1(h2exp2, hexp2)
SIM_PAIR_OF_1(h2exp10, hexp10)
SIM_PAIR_OF_1(h2log, hlog)
SIM_PAIR_OF_1(h2log2, hlog2)
SIM_PAIR_OF_1(h2log10, hlog10)
SIM_PAIR_OF_1(h2sin, hsin)
SIM_PAIR_OF_1(h2cos, hcos)
SIM_PAIR_OF_1(h2tanh, htanh)
SIM_PAIR_OF_1(h2tanh_approx, htanh)
#undef SIM_PAIR_OF_1
#undef SIM_PAIR_OF_2
#undef SIM_PAIR_OF_3

// Complex multiply-add: x is the real part, y the imaginary part.
SIM_INLINE SIM_HALF2 __hcmadd(SIM_HALF2 a, SIM_HALF2 b, SIM_HALF2 c) {
    SIM_HALF real = __hfma(__hneg(a.y), b.y, __hfma(a.x, b.x, c.x));
    SIM_HALF imaginary = __hfma(a.y, b.x, __hfma(a.x, b.y, c.y));
    return SIM_HALF2(real, imaginary);
}

// Comparisons of pairs: as 1.0 or 0.0 per half, as one bool (both true), or as a mask of 16 bits per half.
#define SIM_COMPARE(relation)                                                                         \
    SIM_INLINE SIM_HALF2 __h##relation##2(SIM_HALF2 a, SIM_HALF2 b) {                                 \
        return SIM_HALF2(SIM_FROM_BITS(__h##relation(a.x, b.x) ? SIM_FORMAT::one : 0),                \
                         SIM_FROM_BITS(__h##relation(a.y, b.y) ? SIM_FORMAT::one : 0));               \
    }                                                                                                 \
    SIM_INLINE bool __hb##relation##2(SIM_HALF2 a, SIM_HALF2 b) {                                     \
        return __h##relation(a.x, b.x) && __h##relation(a.y, b.y);                                    \
    }                                                                                                 \
    SIM_INLINE unsigned int __h##relation##2_mask(SIM_HALF2 a, SIM_HALF2 b) {                         \
        return (__h##relation(a.x, b.x) ? 0xffffu : 0) | (__h##relation(a.y, b.y) ? 0xffff0000u : 0); \
    }
SIM_COMPARE(eq)
SIM_COMPARE(ne)
SIM_COMPARE(lt)
SIM_COMPARE(le)
SIM_COMPARE(gt)
SIM_COMPARE(ge)
SIM_COMPARE(equ)
SIM_COMPARE(neu)
SIM_COMPARE(ltu)
SIM_COMPARE(leu)
SIM_COMPARE(gtu)
SIM_COMPARE(geu)
#undef SIM_COMPARE

SIM_INLINE SIM_HALF2 __hisnan2(SIM_HALF2 a) {
    return SIM_HALF2(SIM_FROM_BITS(__hisnan(a.x) ? SIM_FORMAT::one : 0),
                     SIM_FROM_BITS(__hisnan(a.y) ? SIM_FORMAT::one : 0));
}
SIM_INLINE float __low2float(SIM_HALF2 a) { return ::sim::to_float(a.x); }
SIM_INLINE float __high2float(SIM_HALF2 a) { return ::sim::to_float(a.y); }
SIM_INLINE SIM_HALF2 __lowhigh2highlow(SIM_HALF2 a) { return SIM_HALF2(a.y, a.x); }

// ----------------------------------------------------------------------------------------------------- operators

SIM_INLINE SIM_HALF operator+(const SIM_HALF& a, const SIM_HALF& b) { return __hadd(a, b); }
SIM_INLINE SIM_HALF operator-(const SIM_HALF& a, const SIM_HALF& b) { return __hsub(a, b); }
SIM_INLINE SIM_HALF operator*(const SIM_HALF& a, const SIM_HALF& b) { return __hmul(a, b); }
SIM_INLINE SIM_HALF operator/(const SIM_HALF& a, const SIM_HALF& b) { return __hdiv(a, b); }
SIM_INLINE SIM_HALF& operator+=(SIM_HALF& a, const SIM_HALF& b) { return a = __hadd(a, b); }
SIM_INLINE SIM_HALF& operator-=(SIM_HALF& a, const SIM_HALF& b) { return a = __hsub(a, b); }
SIM_INLINE SIM_HALF& operator*=(SIM_HALF& a, const SIM_HALF& b) { return a = __hmul(a, b); }
SIM_INLINE SIM_HALF& operator/=(SIM_HALF& a, const SIM_HALF& b) { return a = __hdiv(a, b); }
SIM_INLINE SIM_HALF& operator++(SIM_HALF& a) { return a = __hadd(a, SIM_FROM_BITS(SIM_FORMAT::one)); }
SIM_INLINE SIM_HALF& operator--(SIM_HALF& a) { return a = __hsub(a, SIM_FROM_BITS(SIM_FORMAT::one)); }
SIM_INLINE SIM_HALF operator++(SIM_HALF& a, int) {
    SIM_HALF before = a;
    ++a;
    return before;
}
SIM_INLINE SIM_HALF operator--(SIM_HALF& a, int) {
    SIM_HALF before = a;
    --a;
    return before;
}
SIM_INLINE SIM_HALF operator+(const SIM_HALF& a) { return a; }
SIM_INLINE SIM_HALF operator-(const SIM_HALF& a) { return __hneg(a); }
SIM_INLINE bool operator==(const SIM_HALF& a, const SIM_HALF& b) { return __heq(a, b); }
SIM_INLINE bool operator!=(const SIM_HALF& a, const SIM_HALF& b) { return __hneu(a, b); }
SIM_INLINE bool operator<(const SIM_HALF& a, const SIM_HALF& b) { return __hlt(a, b); }
SIM_INLINE bool operator<=(const SIM_HALF& a, const SIM_HALF& b) { return __hle(a, b); }
SIM_INLINE bool operator>(const SIM_HALF& a, const SIM_HALF& b) { return __hgt(a, b); }
SIM_INLINE bool operator>=(const SIM_HALF& a, const SIM_HALF& b) { return __hge(a, b); }

SIM_INLINE SIM_HALF2 operator+(const SIM_HALF2& a, const SIM_HALF2& b) { return __hadd2(a, b); }
SIM_INLINE SIM_HALF2 operator-(const SIM_HALF2& a, const SIM_HALF2& b) { return __hsub2(a, b); }
SIM_INLINE SIM_HALF2 operator*(const SIM_HALF2& a, const SIM_HALF2& b) { return __hmul2(a, b); }
SIM_INLINE SIM_HALF2 operator/(const SIM_HALF2& a, const SIM_HALF2& b) { return __h2div(a, b); }
SIM_INLINE SIM_HALF2& operator+=(SIM_HALF2& a, const SIM_HALF2& b) { return a = __hadd2(a, b); }
SIM_INLINE SIM_HALF2& operator-=(SIM_HALF2& a, const SIM_HALF2& b) { return a = __hsub2(a, b); }
SIM_INLINE SIM_HALF2& operator*=(SIM_HALF2& a, const SIM_HALF2& b) { return a = __hmul2(a, b); }
SIM_INLINE SIM_HALF2& operator/=(SIM_HALF2& a, const SIM_HALF2& b) { return a = __h2div(a, b); }
SIM_INLINE SIM_HALF2& operator++(SIM_HALF2& a) {
    return a = __hadd2(a, SIM_HALF2(SIM_FROM_BITS(SIM_FORMAT::one), SIM_FROM_BITS(SIM_FORMAT::one)));
}
SIM_INLINE SIM_HALF2& operator--(SIM_HALF2& a) {
    return a = __hsub2(a, SIM_HALF2(SIM_FROM_BITS(SIM_FORMAT::one), SIM_FROM_BITS(SIM_FORMAT::one)));
}
SIM_INLINE SIM_HALF2 operator+(const SIM_HALF2& a) { return a; }
SIM_INLINE SIM_HALF2 operator-(const SIM_HALF2& a) { return __hneg2(a); }
SIM_INLINE bool operator==(const SIM_HALF2& a, const SIM_HALF2& b) { return __hbeq2(a, b); }
// Returns true only if both halves differ, so it is not the negation of ==.
SIM_INLINE bool operator!=(const SIM_HALF2& a, const SIM_HALF2& b) { return __hbneu2(a, b); }
SIM_INLINE bool operator<(const SIM_HALF2& a, const SIM_HALF2& b) { return __hblt2(a, b); }
SIM_INLINE bool operator<=(const SIM_HALF2& a, const SIM_HALF2& b) { return __hble2(a, b); }
SIM_INLINE bool operator>(const SIM_HALF2& a, const SIM_HALF2& b) { return __hbgt2(a, b); }
SIM_INLINE bool operator>=(const SIM_HALF2& a, const SIM_HALF2& b) { return __hbge2(a, b); }

// --------------------------------------------------------------------------- conversions from and to the integers

// __int2half_rn(i), __half2int_rz(h), ... for int, unsigned, short, ..., in the four rounding modes.
#define SIM_INTEGER_ROUNDED(word, Integer, mode, suffix)                      \
    SIM_INLINE SIM_HALF SIM_HALF_NAME(__##word##2, suffix)(Integer i) {       \
        SIM_COUNTS(conversion);                                               \
        return SIM_FROM_BITS(::sim::small_from_integer<SIM_FORMAT>(i, mode)); \
    }                                                                         \
    SIM_INLINE Integer SIM_HALF_NAME(__, 2##word##suffix)(SIM_HALF a) {       \
        SIM_COUNTS(conversion);                                               \
        return ::sim::saturating_integer<Integer>(::sim::to_double(a), mode); \
    }
#define SIM_INTEGER_CONVERSIONS(word, Integer)                        \
    SIM_INTEGER_ROUNDED(word, Integer, ::sim::Rounding::nearest, _rn) \
    SIM_INTEGER_ROUNDED(word, Integer, ::sim::Rounding::zero, _rz)    \
    SIM_INTEGER_ROUNDED(word, Integer, ::sim::Rounding::down, _rd)    \
    SIM_INTEGER_ROUNDED(word, Integer, ::sim::Rounding::up, _ru)
SIM_INTEGER_CONVERSIONS(short, short)
SIM_INTEGER_CONVERSIONS(ushort, unsigned short)
SIM_INTEGER_CONVERSIONS(int, int)
SIM_INTEGER_CONVERSIONS(uint, unsigned int)
SIM_INTEGER_CONVERSIONS(ll, long long)
SIM_INTEGER_CONVERSIONS(ull, unsigned long long)
#undef SIM_INTEGER_CONVERSIONS
#undef SIM_INTEGER_ROUNDED

SIM_INLINE signed char SIM_HALF_NAME(__, 2char_rz)(SIM_HALF a) {
    SIM_COUNTS(conversion);
    return ::sim::saturating_integer<signed char>(::sim::to_double(a), ::sim::Rounding::zero);
}
SIM_INLINE unsigned char SIM_HALF_NAME(__, 2uchar_rz)(SIM_HALF a) {
    SIM_COUNTS(conversion);
    return ::sim::saturating_integer<unsigned char>(::sim::to_double(a), ::sim::Rounding::zero);
}

// ------------------------------------------------------------------------------------------------------- atomics

SIM_INLINE SIM_HALF atomicAdd(SIM_HALF* address, SIM_HALF value) {
    return SIM_FROM_BITS(::sim::SIM_ATOMIC_HALF(::sim::AtomicOp::add, address, value.bits));
}
// The two halves are added separately: each addition is atomic, the pair is not.
SIM_INLINE SIM_HALF2 atomicAdd(SIM_HALF2* address, SIM_HALF2 value) {
    uint32_t bits = static_cast<uint32_t>(value.y.bits) << 16 | value.x.bits;
    uint32_t old = ::sim::SIM_ATOMIC_HALF2(::sim::AtomicOp::add, address, bits);
    return SIM_HALF2(SIM_FROM_BITS(old & 0xffff), SIM_FROM_BITS(old >> 16));
}

#undef SIM_ROUND
#undef SIM_FROM_BITS
