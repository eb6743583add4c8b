// make_float4(x, y, z, w) and related functions: one for each of CUDA's vector types.
#pragma once

#include "vector_types.h"

#ifdef __cplusplus
#define SIM_MAKE __attribute__((always_inline)) static constexpr inline
#define SIM_MADE(type) type
#else
#define SIM_MAKE static inline
#define SIM_MADE(type) (type)
#endif
#define SIM_MAKE_FUNCTIONS(prefix, T)                                                           \
    SIM_MAKE prefix##1 make_##prefix##1(T x) { return SIM_MADE(prefix##1){x}; }                 \
    SIM_MAKE prefix##2 make_##prefix##2(T x, T y) { return SIM_MADE(prefix##2){x, y}; }         \
    SIM_MAKE prefix##3 make_##prefix##3(T x, T y, T z) { return SIM_MADE(prefix##3){x, y, z}; } \
    SIM_MAKE prefix##4 make_##prefix##4(T x, T y, T z, T w) { return SIM_MADE(prefix##4){x, y, z, w}; }
#ifdef __cplusplus
#define SIM_MAKE4(type, T) \
    SIM_MAKE type make_##type(T x, T y, T z, T w) { return type{x, y, z, w}; }
#define SIM_MAKE_WIDE(prefix, T)  \
    SIM_MAKE_FUNCTIONS(prefix, T) \
    SIM_MAKE4(prefix##4_16a, T)   \
    SIM_MAKE4(prefix##4_32a, T)
#else
#define SIM_MAKE_WIDE SIM_MAKE_FUNCTIONS
#endif

SIM_ELEMENT_TYPES(SIM_MAKE_FUNCTIONS, SIM_MAKE_WIDE)
SIM_MAKE_FUNCTIONS(uint, unsigned int)

#undef SIM_MAKE_WIDE
#undef SIM_MAKE4
#undef SIM_MAKE_FUNCTIONS
#undef SIM_MAKE
#undef SIM_MADE
