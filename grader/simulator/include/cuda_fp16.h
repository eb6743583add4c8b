// half and half2: CUDA's 16-bit floating-point types, and their conversions. The parts shared with bfloat16 are in
// sim/half_type.h and sim/half_functions.h.
//
// __half converts from and to every arithmetic type, as CUDA's does, with the same consequence: `h + 1.0f` is ambiguous
// and does not compile; write `__half2float(h) + 1.0f` or `h + __float2half(1.0f)`.
#pragma once

#include <type_traits>

#include "sim/atomics.h"
#include "sim/math.h"
#include "sim/small_float.h"
#include "vector_functions.h"

struct __nv_bfloat16;

#define SIM_HALF __half
#define SIM_HALF2 __half2
#define SIM_RAW __half_raw
#define SIM_RAW2 __half2_raw
#define SIM_OTHER_HALF __nv_bfloat16
#define SIM_FORMAT ::sim::F16
#define SIM_HALF_NAME(before, after) SIM_JOIN(SIM_JOIN(before, half), after)
#define SIM_ATOMIC_HALF atomic_f16
#define SIM_ATOMIC_HALF2 atomic_f16x2
#include "sim/half_type.h"
#undef SIM_HALF
#undef SIM_HALF2
#undef SIM_RAW
#undef SIM_RAW2
#undef SIM_OTHER_HALF
#undef SIM_FORMAT
#undef SIM_HALF_NAME
#undef SIM_ATOMIC_HALF
#undef SIM_ATOMIC_HALF2

typedef __half half;
typedef __half2 half2;
typedef __half nv_half;
typedef __half2 nv_half2;
typedef __half __nv_half;
typedef __half2 __nv_half2;

#define CUDART_INF_FP16 __ushort_as_half(static_cast<unsigned short>(0x7c00))
#define CUDART_NAN_FP16 __ushort_as_half(static_cast<unsigned short>(0x7fff))
#define CUDART_MIN_DENORM_FP16 __ushort_as_half(static_cast<unsigned short>(0x0001))
#define CUDART_MAX_NORMAL_FP16 __ushort_as_half(static_cast<unsigned short>(0x7bff))
#define CUDART_NEG_ZERO_FP16 __ushort_as_half(static_cast<unsigned short>(0x8000))
#define CUDART_ZERO_FP16 __ushort_as_half(static_cast<unsigned short>(0x0000))
#define CUDART_ONE_FP16 __ushort_as_half(static_cast<unsigned short>(0x3c00))
