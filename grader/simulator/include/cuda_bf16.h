// __nv_bfloat16 and the pair __nv_bfloat162. A bfloat16 is the upper half of a float, so it has the range of float and
// 8 bits of precision. Most of the implementation is in sim/half_type.h and sim/half_functions.h.
#pragma once

#include "cuda_fp16.h"

#define SIM_HALF __nv_bfloat16
#define SIM_HALF2 __nv_bfloat162
#define SIM_RAW __nv_bfloat16_raw
#define SIM_RAW2 __nv_bfloat162_raw
#define SIM_OTHER_HALF __half
#define SIM_FORMAT ::sim::BF16
#define SIM_HALF_NAME(before, after) SIM_JOIN(SIM_JOIN(before, bfloat16), after)
#define SIM_ATOMIC_HALF atomic_bf16
#define SIM_ATOMIC_HALF2 atomic_bf16x2
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

typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

#define CUDART_INF_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x7f80))
#define CUDART_NAN_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x7fff))
#define CUDART_MIN_DENORM_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x0001))
#define CUDART_MAX_NORMAL_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x7f7f))
#define CUDART_NEG_ZERO_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x8000))
#define CUDART_ZERO_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x0000))
#define CUDART_ONE_BF16 __ushort_as_bfloat16(static_cast<unsigned short>(0x3f80))

SIM_INLINE __half::__half(const __nv_bfloat16 value) : bits(::sim::F16::from_float(__bfloat162float(value))) {}
SIM_INLINE __nv_bfloat16::__nv_bfloat16(const __half value) : bits(::sim::BF16::from_float(__half2float(value))) {}
