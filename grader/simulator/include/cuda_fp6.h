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

namespace sim {
SIM_INLINE float decode_fp6(unsigned x, __nv_fp6_interpretation_t kind) {
    return kind == __NV_E2M3 ? E2M3::decode(x & 0xff) : E3M2::decode(x & 0xff);
}
}  // namespace sim

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
SIM_NARROW_CONVERSIONS(fp6, 8, __nv_fp6_interpretation_t, kind, cudaRoundMode, rounding)
