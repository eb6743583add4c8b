// cuRAND's uniform distribution over (0, 1]. Part of curand_kernel.h.
#pragma once

#include "curand_kernel.h"

namespace sim {

SIM_INLINE float uniform(unsigned x) { return static_cast<float>(x) * 0x1p-32f + 0x1p-33f; }
SIM_INLINE double uniform(unsigned low, unsigned high) {
    return static_cast<double>(low ^ static_cast<unsigned long long>(high) << 21) * 0x1p-53 + 0x1p-54;
}

}  // namespace sim

SIM_INLINE float curand_uniform(curandStateXORWOW_t* state) { return ::sim::uniform(curand(state)); }
SIM_INLINE float curand_uniform(curandStatePhilox4_32_10_t* state) { return ::sim::uniform(curand(state)); }
SIM_INLINE float4 curand_uniform4(curandStatePhilox4_32_10_t* state) {
    uint4 x = curand4(state);
    return make_float4(::sim::uniform(x.x), ::sim::uniform(x.y), ::sim::uniform(x.z), ::sim::uniform(x.w));
}
SIM_INLINE double curand_uniform_double(curandStateXORWOW_t* state) {
    unsigned low = curand(state);
    return ::sim::uniform(low, curand(state));
}
SIM_INLINE double2 curand_uniform2_double(curandStatePhilox4_32_10_t* state) {
    uint4 x = curand4(state);
    return make_double2(::sim::uniform(x.x, x.y), ::sim::uniform(x.z, x.w));
}
// Uses only 32 random bits, as cuRAND does.
SIM_INLINE double curand_uniform_double(curandStatePhilox4_32_10_t* state) { return curand(state) * 0x1p-32 + 0x1p-32; }
SIM_INLINE double4 curand_uniform4_double(curandStatePhilox4_32_10_t* state) {
    double2 first = curand_uniform2_double(state), second = curand_uniform2_double(state);
    return make_double4(first.x, first.y, second.x, second.y);
}
