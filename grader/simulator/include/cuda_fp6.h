// The 6-bit floating-point formats e2m3 and e3m2: types and conversions. Each value has a byte of its own, of which it
// uses the lower six bits.
// All conversions saturate; NaN becomes the largest number.
#pragma once

#include "cuda_fp8.h"

typedef unsigned char __nv_fp6_storage_t;
typedef unsigned short __nv_fp6x2_storage_t;
typedef unsigned int __nv_fp6x4_storage_t;
enum __nv_fp6_interpretation_t { __NV_E2M3, __NV_E3M2 };

SIM_NARROW(fp6, e2m3, E2M3, __nv_fp6x2_storage_t, __nv_fp6x4_storage_t, 8)
SIM_NARROW(fp6, e3m2, E3M2, __nv_fp6x2_storage_t, __nv_fp6x4_storage_t, 8)

// The rounding is cudaRoundNearest or cudaRoundZero.
SIM_INLINE __nv_fp6_storage_t __nv_cvt_float_to_fp6(float x, __nv_fp6_interpretation_t kind, cudaRoundMode rounding) {
    bool to_nearest = rounding == cudaRoundNearest;
    return static_cast<__nv_fp6_storage_t>(kind == __NV_E2M3 ? ::sim::E2M3::encode(x, true, to_nearest)
                                                             : ::sim::E3M2::encode(x, true, to_nearest));
}
SIM_INLINE __nv_fp6_storage_t __nv_cvt_double_to_fp6(double x, __nv_fp6_interpretation_t kind, cudaRoundMode rounding) {
    bool to_nearest = rounding == cudaRoundNearest;
    return static_cast<__nv_fp6_storage_t>(kind == __NV_E2M3 ? ::sim::E2M3::encode_double(x, true, to_nearest)
                                                             : ::sim::E3M2::encode_double(x, true, to_nearest));
}
SIM_INLINE __nv_fp6_storage_t __nv_cvt_halfraw_to_fp6(__half_raw x, __nv_fp6_interpretation_t kind,
                                                      cudaRoundMode rounding) {
    return __nv_cvt_float_to_fp6(__half2float(__half(x)), kind, rounding);
}
SIM_INLINE __nv_fp6_storage_t __nv_cvt_bfloat16raw_to_fp6(__nv_bfloat16_raw x, __nv_fp6_interpretation_t kind,
                                                          cudaRoundMode rounding) {
    return __nv_cvt_float_to_fp6(__bfloat162float(__nv_bfloat16(x)), kind, rounding);
}
SIM_INLINE __nv_fp6x2_storage_t __nv_cvt_float2_to_fp6x2(float2 x, __nv_fp6_interpretation_t kind,
                                                         cudaRoundMode rounding) {
    return static_cast<__nv_fp6x2_storage_t>(__nv_cvt_float_to_fp6(x.x, kind, rounding) |
                                             __nv_cvt_float_to_fp6(x.y, kind, rounding) << 8);
}
SIM_INLINE __nv_fp6x2_storage_t __nv_cvt_double2_to_fp6x2(double2 x, __nv_fp6_interpretation_t kind,
                                                          cudaRoundMode rounding) {
    return static_cast<__nv_fp6x2_storage_t>(__nv_cvt_double_to_fp6(x.x, kind, rounding) |
                                             __nv_cvt_double_to_fp6(x.y, kind, rounding) << 8);
}
SIM_INLINE __nv_fp6x2_storage_t __nv_cvt_halfraw2_to_fp6x2(__half2_raw x, __nv_fp6_interpretation_t kind,
                                                           cudaRoundMode rounding) {
    return __nv_cvt_float2_to_fp6x2(__half22float2(__half2(x)), kind, rounding);
}
SIM_INLINE __nv_fp6x2_storage_t __nv_cvt_bfloat16raw2_to_fp6x2(__nv_bfloat162_raw x, __nv_fp6_interpretation_t kind,
                                                               cudaRoundMode rounding) {
    return __nv_cvt_float2_to_fp6x2(__bfloat1622float2(__nv_bfloat162(x)), kind, rounding);
}
SIM_INLINE __half_raw __nv_cvt_fp6_to_halfraw(__nv_fp6_storage_t x, __nv_fp6_interpretation_t kind) {
    return __float2half(kind == __NV_E2M3 ? ::sim::E2M3::decode(x) : ::sim::E3M2::decode(x));
}
SIM_INLINE __half2_raw __nv_cvt_fp6x2_to_halfraw2(__nv_fp6x2_storage_t x, __nv_fp6_interpretation_t kind) {
    return __half2(__half(__nv_cvt_fp6_to_halfraw(static_cast<__nv_fp6_storage_t>(x), kind)),
                   __half(__nv_cvt_fp6_to_halfraw(static_cast<__nv_fp6_storage_t>(x >> 8), kind)));
}
