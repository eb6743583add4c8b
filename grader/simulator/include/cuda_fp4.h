// The 4-bit floating-point format e2m1: types and conversions. Two values share a byte, the first in its lower half.
// All conversions saturate; NaN becomes the largest number.
#pragma once

#include "cuda_fp6.h"

typedef unsigned char __nv_fp4_storage_t;
typedef unsigned char __nv_fp4x2_storage_t;
typedef unsigned short __nv_fp4x4_storage_t;
enum __nv_fp4_interpretation_t { __NV_E2M1 };

SIM_NARROW(fp4, e2m1, E2M1, __nv_fp4x2_storage_t, __nv_fp4x4_storage_t, 4)

// The rounding is cudaRoundNearest or cudaRoundZero.
SIM_INLINE __nv_fp4_storage_t __nv_cvt_float_to_fp4(float x, __nv_fp4_interpretation_t, cudaRoundMode rounding) {
    bool to_nearest = rounding == cudaRoundNearest;
    return static_cast<__nv_fp4_storage_t>(::sim::E2M1::encode(x, true, to_nearest));
}
SIM_INLINE __nv_fp4_storage_t __nv_cvt_double_to_fp4(double x, __nv_fp4_interpretation_t, cudaRoundMode rounding) {
    bool to_nearest = rounding == cudaRoundNearest;
    return static_cast<__nv_fp4_storage_t>(::sim::E2M1::encode_double(x, true, to_nearest));
}
SIM_INLINE __nv_fp4_storage_t __nv_cvt_halfraw_to_fp4(__half_raw x, __nv_fp4_interpretation_t kind,
                                                      cudaRoundMode rounding) {
    return __nv_cvt_float_to_fp4(__half2float(__half(x)), kind, rounding);
}
SIM_INLINE __nv_fp4_storage_t __nv_cvt_bfloat16raw_to_fp4(__nv_bfloat16_raw x, __nv_fp4_interpretation_t kind,
                                                          cudaRoundMode rounding) {
    return __nv_cvt_float_to_fp4(__bfloat162float(__nv_bfloat16(x)), kind, rounding);
}
SIM_INLINE __nv_fp4x2_storage_t __nv_cvt_float2_to_fp4x2(float2 x, __nv_fp4_interpretation_t kind,
                                                         cudaRoundMode rounding) {
    return static_cast<__nv_fp4x2_storage_t>(__nv_cvt_float_to_fp4(x.x, kind, rounding) |
                                             __nv_cvt_float_to_fp4(x.y, kind, rounding) << 4);
}
SIM_INLINE __nv_fp4x2_storage_t __nv_cvt_double2_to_fp4x2(double2 x, __nv_fp4_interpretation_t kind,
                                                          cudaRoundMode rounding) {
    return static_cast<__nv_fp4x2_storage_t>(__nv_cvt_double_to_fp4(x.x, kind, rounding) |
                                             __nv_cvt_double_to_fp4(x.y, kind, rounding) << 4);
}
SIM_INLINE __nv_fp4x2_storage_t __nv_cvt_halfraw2_to_fp4x2(__half2_raw x, __nv_fp4_interpretation_t kind,
                                                           cudaRoundMode rounding) {
    return __nv_cvt_float2_to_fp4x2(__half22float2(__half2(x)), kind, rounding);
}
SIM_INLINE __nv_fp4x2_storage_t __nv_cvt_bfloat16raw2_to_fp4x2(__nv_bfloat162_raw x, __nv_fp4_interpretation_t kind,
                                                               cudaRoundMode rounding) {
    return __nv_cvt_float2_to_fp4x2(__bfloat1622float2(__nv_bfloat162(x)), kind, rounding);
}
SIM_INLINE __half_raw __nv_cvt_fp4_to_halfraw(__nv_fp4_storage_t x, __nv_fp4_interpretation_t) {
    return __float2half(::sim::E2M1::decode(x));
}
SIM_INLINE __half2_raw __nv_cvt_fp4x2_to_halfraw2(__nv_fp4x2_storage_t x, __nv_fp4_interpretation_t kind) {
    return __half2(__half(__nv_cvt_fp4_to_halfraw(static_cast<__nv_fp4_storage_t>(x), kind)),
                   __half(__nv_cvt_fp4_to_halfraw(static_cast<__nv_fp4_storage_t>(x >> 4), kind)));
}
