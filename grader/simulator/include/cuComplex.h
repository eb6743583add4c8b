// Complex numbers as float2 and double2. cuCdiv scales its operands, so that their squares do not overflow.
#pragma once
#define CU_COMPLEX_H_

#include <math.h>

#include "cuda_runtime.h"

typedef float2 cuFloatComplex;
typedef double2 cuDoubleComplex;
typedef cuFloatComplex cuComplex;

SIM_INLINE float cuCrealf(cuFloatComplex x) { return x.x; }
SIM_INLINE float cuCimagf(cuFloatComplex x) { return x.y; }
SIM_INLINE cuFloatComplex make_cuFloatComplex(float real, float imag) { return make_float2(real, imag); }
SIM_INLINE cuFloatComplex cuConjf(cuFloatComplex x) { return make_float2(x.x, -x.y); }
SIM_INLINE cuFloatComplex cuCaddf(cuFloatComplex x, cuFloatComplex y) { return make_float2(x.x + y.x, x.y + y.y); }
SIM_INLINE cuFloatComplex cuCsubf(cuFloatComplex x, cuFloatComplex y) { return make_float2(x.x - y.x, x.y - y.y); }
SIM_INLINE cuFloatComplex cuCmulf(cuFloatComplex x, cuFloatComplex y) {
    return make_float2(x.x * y.x - x.y * y.y, x.x * y.y + x.y * y.x);
}
SIM_INLINE cuFloatComplex cuCfmaf(cuFloatComplex x, cuFloatComplex y, cuFloatComplex z) {
    return cuCaddf(cuCmulf(x, y), z);
}
SIM_INLINE cuFloatComplex cuCdivf(cuFloatComplex x, cuFloatComplex y) {
    float scale = 1 / (::fabsf(y.x) + ::fabsf(y.y));
    cuFloatComplex a = make_float2(x.x * scale, x.y * scale), b = make_float2(y.x * scale, y.y * scale);
    float norm = 1 / (b.x * b.x + b.y * b.y);
    return make_float2((a.x * b.x + a.y * b.y) * norm, (a.y * b.x - a.x * b.y) * norm);
}
SIM_INLINE float cuCabsf(cuFloatComplex x) { return ::hypotf(x.x, x.y); }

SIM_INLINE double cuCreal(cuDoubleComplex x) { return x.x; }
SIM_INLINE double cuCimag(cuDoubleComplex x) { return x.y; }
SIM_INLINE cuDoubleComplex make_cuDoubleComplex(double real, double imag) { return make_double2(real, imag); }
SIM_INLINE cuDoubleComplex cuConj(cuDoubleComplex x) { return make_double2(x.x, -x.y); }
SIM_INLINE cuDoubleComplex cuCadd(cuDoubleComplex x, cuDoubleComplex y) { return make_double2(x.x + y.x, x.y + y.y); }
SIM_INLINE cuDoubleComplex cuCsub(cuDoubleComplex x, cuDoubleComplex y) { return make_double2(x.x - y.x, x.y - y.y); }
SIM_INLINE cuDoubleComplex cuCmul(cuDoubleComplex x, cuDoubleComplex y) {
    return make_double2(x.x * y.x - x.y * y.y, x.x * y.y + x.y * y.x);
}
SIM_INLINE cuDoubleComplex cuCfma(cuDoubleComplex x, cuDoubleComplex y, cuDoubleComplex z) {
    return cuCadd(cuCmul(x, y), z);
}
SIM_INLINE cuDoubleComplex cuCdiv(cuDoubleComplex x, cuDoubleComplex y) {
    double scale = 1 / (::fabs(y.x) + ::fabs(y.y));
    cuDoubleComplex a = make_double2(x.x * scale, x.y * scale), b = make_double2(y.x * scale, y.y * scale);
    double norm = 1 / (b.x * b.x + b.y * b.y);
    return make_double2((a.x * b.x + a.y * b.y) * norm, (a.y * b.x - a.x * b.y) * norm);
}
SIM_INLINE double cuCabs(cuDoubleComplex x) { return ::hypot(x.x, x.y); }

SIM_INLINE cuComplex make_cuComplex(float real, float imag) { return make_float2(real, imag); }
SIM_INLINE cuDoubleComplex cuComplexFloatToDouble(cuFloatComplex x) { return make_double2(x.x, x.y); }
SIM_INLINE cuFloatComplex cuComplexDoubleToFloat(cuDoubleComplex x) {
    return make_float2(static_cast<float>(x.x), static_cast<float>(x.y));
}
