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
SIM_NARROW_CONVERSIONS(fp6, 8, E2M3, E3M2, __nv_fp6_interpretation_t, kind, cudaRoundMode, rounding, true,
                       rounding == cudaRoundNearest)
