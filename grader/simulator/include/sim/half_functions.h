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
// Comparisons: of two numbers; and of pairs, as 1.0 or 0.0 per half, as one bool (both true), or as a mask of 16 bits per
// half. __hne is false if either is NaN. (operator!= is __hneu, which is true then.) The u forms are true when either is
// NaN ("unordered").
#define SIM_COMPARE(relation, value)                                                                  \
    SIM_INLINE bool __h##relation(SIM_HALF one, SIM_HALF other) {                                     \
        float a = ::sim::to_float(one), b = ::sim::to_float(other);                                   \
        return value;                                                                                 \
    }                                                                                                 \
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
SIM_COMPARE(eq, a == b)
SIM_COMPARE(ne, a<b || a> b)
SIM_COMPARE(lt, a < b)
SIM_COMPARE(le, a <= b)
SIM_COMPARE(gt, a > b)
SIM_COMPARE(ge, a >= b)
SIM_COMPARE(equ, !(a < b || a > b))
SIM_COMPARE(neu, !(a == b))
SIM_COMPARE(ltu, !(a >= b))
SIM_COMPARE(leu, !(a > b))
SIM_COMPARE(gtu, !(a <= b))
SIM_COMPARE(geu, !(a < b))
#undef SIM_COMPARE

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
#define SIM_FUNCTION(name, counted, value)         \
    SIM_INLINE SIM_HALF h##name(SIM_HALF number) { \
        counted;                                   \
        float a = ::sim::to_float(number);         \
        return SIM_ROUND(value);                   \
    }                                              \
    SIM_INLINE SIM_HALF2 h2##name(SIM_HALF2 a) { return SIM_HALF2(h##name(a.x), h##name(a.y)); }
SIM_FUNCTION(ceil, , ::ceilf(a))
SIM_FUNCTION(floor, , ::floorf(a))
SIM_FUNCTION(trunc, , ::truncf(a))
SIM_FUNCTION(rint, , ::rintf(a))
SIM_FUNCTION(sqrt, SIM_COUNTS(1_operation), ::sqrt(static_cast<double>(a)))
SIM_FUNCTION(rsqrt, SIM_COUNTS(2_operations), 1.0 / ::sqrt(static_cast<double>(a)))
SIM_FUNCTION(rcp, SIM_COUNTS(1_operation), 1.0 / static_cast<double>(a))
SIM_FUNCTION(exp, SIM_COUNTS(special_function), ::expf(a))
SIM_FUNCTION(exp2, SIM_COUNTS(special_function), ::exp2f(a))
SIM_FUNCTION(exp10, SIM_COUNTS(special_function), ::pow(10.0, static_cast<double>(a)))
SIM_FUNCTION(log, SIM_COUNTS(special_function), ::logf(a))
SIM_FUNCTION(log2, SIM_COUNTS(special_function), ::log2f(a))
SIM_FUNCTION(log10, SIM_COUNTS(special_function), ::log10f(a))
SIM_FUNCTION(sin, SIM_COUNTS(special_function), ::sinf(a))
SIM_FUNCTION(cos, SIM_COUNTS(special_function), ::cosf(a))
SIM_FUNCTION(tanh, SIM_COUNTS(special_function), ::tanhf(a))
SIM_FUNCTION(tanh_approx, SIM_COUNTS(special_function), ::tanhf(a))
#undef SIM_FUNCTION

// --------------------------------------------------------------------------------------------------------- pairs

// SIM_PAIR_OF_2(add, _sat) defines __hadd2_sat, which is __hadd_sat for each half.
#define SIM_PAIR_OF_2(name, suffix)                                                 \
    SIM_INLINE SIM_HALF2 __h##name##2##suffix(SIM_HALF2 a, SIM_HALF2 b) {           \
        return SIM_HALF2(__h##name##suffix(a.x, b.x), __h##name##suffix(a.y, b.y)); \
    }
#define SIM_PAIR_OF_3(name, suffix)                                                           \
    SIM_INLINE SIM_HALF2 __h##name##2##suffix(SIM_HALF2 a, SIM_HALF2 b, SIM_HALF2 c) {        \
        return SIM_HALF2(__h##name##suffix(a.x, b.x, c.x), __h##name##suffix(a.y, b.y, c.y)); \
    }
SIM_PAIR_OF_2(add, )
SIM_PAIR_OF_2(add, _rn)
SIM_PAIR_OF_2(add, _sat)
SIM_PAIR_OF_2(sub, )
SIM_PAIR_OF_2(sub, _rn)
SIM_PAIR_OF_2(sub, _sat)
SIM_PAIR_OF_2(mul, )
SIM_PAIR_OF_2(mul, _rn)
SIM_PAIR_OF_2(mul, _sat)
SIM_PAIR_OF_2(max, )
SIM_PAIR_OF_2(max, _nan)
SIM_PAIR_OF_2(min, )
SIM_PAIR_OF_2(min, _nan)
SIM_PAIR_OF_3(fma, )
SIM_PAIR_OF_3(fma, _sat)
SIM_PAIR_OF_3(fma, _relu)
#undef SIM_PAIR_OF_2
#undef SIM_PAIR_OF_3
SIM_INLINE SIM_HALF2 __h2div(SIM_HALF2 a, SIM_HALF2 b) { return SIM_HALF2(__hdiv(a.x, b.x), __hdiv(a.y, b.y)); }
SIM_INLINE SIM_HALF2 __hneg2(SIM_HALF2 a) { return SIM_HALF2(__hneg(a.x), __hneg(a.y)); }
SIM_INLINE SIM_HALF2 __habs2(SIM_HALF2 a) { return SIM_HALF2(__habs(a.x), __habs(a.y)); }

// Complex multiply-add: x is the real part, y the imaginary part.
SIM_INLINE SIM_HALF2 __hcmadd(SIM_HALF2 a, SIM_HALF2 b, SIM_HALF2 c) {
    SIM_HALF real = __hfma(__hneg(a.y), b.y, __hfma(a.x, b.x, c.x));
    SIM_HALF imaginary = __hfma(a.y, b.x, __hfma(a.x, b.y, c.y));
    return SIM_HALF2(real, imaginary);
}

SIM_INLINE SIM_HALF2 __hisnan2(SIM_HALF2 a) {
    return SIM_HALF2(SIM_FROM_BITS(__hisnan(a.x) ? SIM_FORMAT::one : 0),
                     SIM_FROM_BITS(__hisnan(a.y) ? SIM_FORMAT::one : 0));
}
SIM_INLINE float __low2float(SIM_HALF2 a) { return ::sim::to_float(a.x); }
SIM_INLINE float __high2float(SIM_HALF2 a) { return ::sim::to_float(a.y); }
SIM_INLINE SIM_HALF2 __lowhigh2highlow(SIM_HALF2 a) { return SIM_HALF2(a.y, a.x); }

// ----------------------------------------------------------------------------------------------------- operators

#define SIM_OPERATORS(T, add, sub, mul, div, negated, one)               \
    SIM_INLINE T operator+(const T& a, const T& b) { return add(a, b); } \
    SIM_INLINE T operator-(const T& a, const T& b) { return sub(a, b); } \
    SIM_INLINE T operator*(const T& a, const T& b) { return mul(a, b); } \
    SIM_INLINE T operator/(const T& a, const T& b) { return div(a, b); } \
    SIM_INLINE T& operator+=(T& a, const T& b) { return a = add(a, b); } \
    SIM_INLINE T& operator-=(T& a, const T& b) { return a = sub(a, b); } \
    SIM_INLINE T& operator*=(T& a, const T& b) { return a = mul(a, b); } \
    SIM_INLINE T& operator/=(T& a, const T& b) { return a = div(a, b); } \
    SIM_INLINE T& operator++(T& a) { return a = add(a, one); }           \
    SIM_INLINE T& operator--(T& a) { return a = sub(a, one); }           \
    SIM_INLINE T operator++(T& a, int) {                                 \
        T before = a;                                                    \
        ++a;                                                             \
        return before;                                                   \
    }                                                                    \
    SIM_INLINE T operator--(T& a, int) {                                 \
        T before = a;                                                    \
        --a;                                                             \
        return before;                                                   \
    }                                                                    \
    SIM_INLINE T operator+(const T& a) { return a; }                     \
    SIM_INLINE T operator-(const T& a) { return negated(a); }
#define SIM_ONE SIM_FROM_BITS(SIM_FORMAT::one)
SIM_OPERATORS(SIM_HALF, __hadd, __hsub, __hmul, __hdiv, __hneg, SIM_ONE)
SIM_OPERATORS(SIM_HALF2, __hadd2, __hsub2, __hmul2, __h2div, __hneg2, SIM_HALF2(SIM_ONE, SIM_ONE))
#undef SIM_ONE
#undef SIM_OPERATORS
// Pairs are compared in both halves. So != is true only if both differ, and is not the negation of ==.
#define SIM_RELATION(relation, name)                                                                    \
    SIM_INLINE bool operator relation(const SIM_HALF& a, const SIM_HALF& b) { return __h##name(a, b); } \
    SIM_INLINE bool operator relation(const SIM_HALF2& a, const SIM_HALF2& b) { return __hb##name##2(a, b); }
SIM_RELATION(==, eq)
SIM_RELATION(!=, neu)
SIM_RELATION(<, lt)
SIM_RELATION(<=, le)
SIM_RELATION(>, gt)
SIM_RELATION(>=, ge)
#undef SIM_RELATION

// --------------------------------------------------------------------------- conversions from and to the integers

// __int2half_rn(i), __half2int_rz(h), ... for int, unsigned, short, ..., in the four rounding modes.
#define SIM_TO_INTEGER(word, Integer, mode, suffix)                           \
    SIM_INLINE Integer SIM_HALF_NAME(__, 2##word##suffix)(SIM_HALF a) {       \
        SIM_COUNTS(conversion);                                               \
        return ::sim::saturating_integer<Integer>(::sim::to_double(a), mode); \
    }
#define SIM_INTEGER_ROUNDED(word, Integer, mode, suffix)                      \
    SIM_INLINE SIM_HALF SIM_HALF_NAME(__##word##2, suffix)(Integer i) {       \
        SIM_COUNTS(conversion);                                               \
        return SIM_FROM_BITS(::sim::small_from_integer<SIM_FORMAT>(i, mode)); \
    }                                                                         \
    SIM_TO_INTEGER(word, Integer, mode, suffix)
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
SIM_TO_INTEGER(char, signed char, ::sim::Rounding::zero, _rz)
SIM_TO_INTEGER(uchar, unsigned char, ::sim::Rounding::zero, _rz)
#undef SIM_INTEGER_CONVERSIONS
#undef SIM_INTEGER_ROUNDED
#undef SIM_TO_INTEGER

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
