// Complex numbers as float2 and double2. cuCdiv scales its operands, so that their squares do not overflow.
#pragma once
#define CU_COMPLEX_H_

#include <math.h>

#include "cuda_runtime.h"

typedef float2 cuFloatComplex;
typedef double2 cuDoubleComplex;
typedef cuFloatComplex cuComplex;

// The functions for a type of complex numbers, which end in f for float.
#define SIM_COMPLEX(T, Complex, make, f)                                                                              \
    SIM_INLINE T cuCreal##f(Complex x) { return x.x; }                                                                \
    SIM_INLINE T cuCimag##f(Complex x) { return x.y; }                                                                \
    SIM_INLINE Complex make_##Complex(T real, T imag) { return make(real, imag); }                                    \
    SIM_INLINE Complex cuConj##f(Complex x) { return make(x.x, -x.y); }                                               \
    SIM_INLINE Complex cuCadd##f(Complex x, Complex y) { return make(x.x + y.x, x.y + y.y); }                         \
    SIM_INLINE Complex cuCsub##f(Complex x, Complex y) { return make(x.x - y.x, x.y - y.y); }                         \
    SIM_INLINE Complex cuCmul##f(Complex x, Complex y) { return make(x.x * y.x - x.y * y.y, x.x * y.y + x.y * y.x); } \
    SIM_INLINE Complex cuCfma##f(Complex x, Complex y, Complex z) { return cuCadd##f(cuCmul##f(x, y), z); }           \
    SIM_INLINE Complex cuCdiv##f(Complex x, Complex y) {                                                              \
        T scale = 1 / (::fabs##f(y.x) + ::fabs##f(y.y));                                                              \
        Complex a = make(x.x * scale, x.y * scale), b = make(y.x * scale, y.y * scale);                               \
        T norm = 1 / (b.x * b.x + b.y * b.y);                                                                         \
        return make((a.x * b.x + a.y * b.y) * norm, (a.y * b.x - a.x * b.y) * norm);                                  \
    }                                                                                                                 \
    SIM_INLINE T cuCabs##f(Complex x) { return ::hypot##f(x.x, x.y); }
SIM_COMPLEX(float, cuFloatComplex, make_float2, f)
SIM_COMPLEX(double, cuDoubleComplex, make_double2, )
#undef SIM_COMPLEX

SIM_INLINE cuComplex make_cuComplex(float real, float imag) { return make_float2(real, imag); }
SIM_INLINE cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex x) { return make_double2(x.x, x.y); }
SIM_INLINE cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex x) {
    return make_float2(static_cast<float>(x.x), static_cast<float>(x.y));
}
