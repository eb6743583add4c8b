// The 8-bit floating-point formats e4m3, e5m2 and e8m0 (powers of two, for scales): types and conversions.
#pragma once

#include "sim/narrow_types.h"

enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 };

SIM_NARROW(fp8, e4m3, E4M3, __nv_fp8x2_storage_t, __nv_fp8x4_storage_t, 8)
SIM_NARROW(fp8, e5m2, E5M2, __nv_fp8x2_storage_t, __nv_fp8x4_storage_t, 8)
SIM_NARROW(fp8, e8m0, E8M0, __nv_fp8x2_storage_t, __nv_fp8x4_storage_t, 8)

// ------------------------------------------------------------------------------------------------------- e4m3 and e5m2

SIM_NARROW_CONVERSIONS(fp8, 8, E4M3, E5M2, __nv_saturation_t, saturate, __nv_fp8_interpretation_t, kind,
                       saturate == __NV_SATFINITE, true)

// ---------------------------------------------------------------------------------------------------------------- e8m0

// The rounding is cudaRoundZero or cudaRoundPosInf, and concerns magnitudes.
SIM_INLINE __nv_fp8_storage_t __nv_cvt_float_to_e8m0(float x, __nv_saturation_t saturate, cudaRoundMode rounding) {
    return static_cast<__nv_fp8_storage_t>(
        ::sim::E8M0::encode(x, saturate == __NV_SATFINITE, rounding == cudaRoundPosInf));
}
SIM_INLINE __nv_fp8_storage_t __nv_cvt_double_to_e8m0(double x, __nv_saturation_t saturate, cudaRoundMode rounding) {
    return static_cast<__nv_fp8_storage_t>(
        ::sim::E8M0::encode_double(x, saturate == __NV_SATFINITE, rounding == cudaRoundPosInf));
}
SIM_INLINE __nv_fp8_storage_t __nv_cvt_bfloat16raw_to_e8m0(__nv_bfloat16_raw x, __nv_saturation_t saturate,
                                                           cudaRoundMode rounding) {
    return __nv_cvt_float_to_e8m0(__bfloat162float(__nv_bfloat16(x)), saturate, rounding);
}
SIM_INLINE __nv_fp8x2_storage_t __nv_cvt_float2_to_e8m0x2(float2 x, __nv_saturation_t saturate,
                                                          cudaRoundMode rounding) {
    return static_cast<__nv_fp8x2_storage_t>(__nv_cvt_float_to_e8m0(x.x, saturate, rounding) |
                                             __nv_cvt_float_to_e8m0(x.y, saturate, rounding) << 8);
}
SIM_INLINE __nv_fp8x2_storage_t __nv_cvt_double2_to_e8m0x2(double2 x, __nv_saturation_t saturate,
                                                           cudaRoundMode rounding) {
    return static_cast<__nv_fp8x2_storage_t>(__nv_cvt_double_to_e8m0(x.x, saturate, rounding) |
                                             __nv_cvt_double_to_e8m0(x.y, saturate, rounding) << 8);
}
SIM_INLINE __nv_fp8x2_storage_t __nv_cvt_bfloat162raw_to_e8m0x2(__nv_bfloat162_raw x, __nv_saturation_t saturate,
                                                                cudaRoundMode rounding) {
    return __nv_cvt_float2_to_e8m0x2(__bfloat1622float2(__nv_bfloat162(x)), saturate, rounding);
}
SIM_INLINE __nv_bfloat16_raw __nv_cvt_e8m0_to_bf16raw(__nv_fp8_storage_t x) {
    return __float2bfloat16(::sim::E8M0::decode(x));
}
SIM_INLINE __nv_bfloat162_raw __nv_cvt_e8m0x2_to_bf162raw(__nv_fp8x2_storage_t x) {
    return __nv_bfloat162(__nv_bfloat16(__nv_cvt_e8m0_to_bf16raw(static_cast<__nv_fp8_storage_t>(x))),
                          __nv_bfloat16(__nv_cvt_e8m0_to_bf16raw(static_cast<__nv_fp8_storage_t>(x >> 8))));
}
