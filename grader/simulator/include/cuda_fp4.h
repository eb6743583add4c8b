// The 4-bit floating-point format e2m1: types and conversions. Two values share a byte, the first in its lower half.
// All conversions saturate; NaN becomes the largest number.
#pragma once

#include "cuda_fp6.h"

typedef unsigned char __nv_fp4_storage_t;
typedef unsigned char __nv_fp4x2_storage_t;
typedef unsigned short __nv_fp4x4_storage_t;
enum __nv_fp4_interpretation_t { __NV_E2M1 };

SIM_NARROW(fp4, e2m1, E2M1, __nv_fp4x2_storage_t, __nv_fp4x4_storage_t, 4)

namespace sim {
SIM_INLINE float decode_fp4(unsigned x, __nv_fp4_interpretation_t) { return E2M1::decode(x & 0xff); }
}  // namespace sim

// The rounding is cudaRoundNearest or cudaRoundZero.
SIM_INLINE __nv_fp4_storage_t __nv_cvt_float_to_fp4(float x, __nv_fp4_interpretation_t, cudaRoundMode rounding) {
    bool to_nearest = rounding == cudaRoundNearest;
    return static_cast<__nv_fp4_storage_t>(::sim::E2M1::encode(x, true, to_nearest));
}
SIM_INLINE __nv_fp4_storage_t __nv_cvt_double_to_fp4(double x, __nv_fp4_interpretation_t, cudaRoundMode rounding) {
    bool to_nearest = rounding == cudaRoundNearest;
    return static_cast<__nv_fp4_storage_t>(::sim::E2M1::encode_double(x, true, to_nearest));
}
SIM_NARROW_CONVERSIONS(fp4, 4, __nv_fp4_interpretation_t, kind, cudaRoundMode, rounding)
