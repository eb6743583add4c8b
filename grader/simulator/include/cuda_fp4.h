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
SIM_NARROW_CONVERSIONS(fp4, 4, E2M1, E2M1, __nv_fp4_interpretation_t, kind, cudaRoundMode, rounding, true,
                       rounding == cudaRoundNearest)
