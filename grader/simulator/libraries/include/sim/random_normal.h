// cuRAND's normal and log-normal distributions, by the Box-Muller transform. Part of curand_kernel.h.
//
// A GPU approximates logarithm, sine and cosine in its own way, so the last bits of a normal number may differ.
#pragma once

#include "sim/math.h"
#include "sim/random_uniform.h"

namespace sim {

template <typename State>
SIM_INLINE float2 normal_pair(State* state) {
    unsigned x = curand(state), y = curand(state);
    float angle = fmaf(static_cast<float>(y), 0x1p-32f * 6.2831855f, 0x1p-33f * 6.2831855f), sine, cosine;
    __sincosf(angle, &sine, &cosine);
    float radius = sqrtf(-2.0f * logf(uniform(x)));
    return make_float2(sine * radius, cosine * radius);
}
// `half_turns`: the angle, as a multiple of pi.
SIM_INLINE double2 box_muller(double x, double half_turns) {
    double sine, cosine, radius = sqrt(-2.0 * log(x));
    sincospi(half_turns, &sine, &cosine);
    return make_double2(sine * radius, cosine * radius);
}
SIM_INLINE double2 normal_pair_double(curandStateXORWOW* state) {
    double x = curand_uniform_double(state);
    return box_muller(x, 2 * curand_uniform_double(state));
}
SIM_INLINE double2 normal_pair_double(curandStatePhilox4_32_10* state) {
    double2 x = curand_uniform2_double(state);
    return box_muller(x.x, 2 * x.y);
}
// Computes a pair of numbers, returns one and keeps the other for the next call with the same `kind`: 1 normal, 2
// log-normal.
template <typename State, typename T, typename Pair, typename Finish>
SIM_INLINE T one_of_pair(int& flag, T& extra, int kind, State* state, Pair pair, Finish finish) {
    if (flag == kind) {
        flag = 0;
        return extra;
    }
    auto both = pair(state);
    extra = finish(both.y);
    flag = kind;
    return finish(both.x);
}

}  // namespace sim

#define SIM_PAIR(function) [](auto* s) __attribute__((always_inline)) { return ::sim::function(s); }
#define SIM_NORMAL(STATE)                                                                                             \
    SIM_INLINE float2 curand_normal2(STATE* state) { return ::sim::normal_pair(state); }                              \
    SIM_INLINE double2 curand_normal2_double(STATE* state) { return ::sim::normal_pair_double(state); }               \
    SIM_INLINE float curand_normal(STATE* state) {                                                                    \
        return ::sim::one_of_pair(state->boxmuller_flag, state->boxmuller_extra, 1, state, SIM_PAIR(normal_pair),     \
                                  [](float x) { return x; });                                                         \
    }                                                                                                                 \
    SIM_INLINE double curand_normal_double(STATE* state) {                                                            \
        return ::sim::one_of_pair(state->boxmuller_flag_double, state->boxmuller_extra_double, 1, state,              \
                                  SIM_PAIR(normal_pair_double), [](double x) { return x; });                          \
    }                                                                                                                 \
    SIM_INLINE float2 curand_log_normal2(STATE* state, float mean, float stddev) {                                    \
        float2 x = ::sim::normal_pair(state);                                                                         \
        return make_float2(expf(fmaf(stddev, x.x, mean)), expf(fmaf(stddev, x.y, mean)));                             \
    }                                                                                                                 \
    SIM_INLINE double2 curand_log_normal2_double(STATE* state, double mean, double stddev) {                          \
        double2 x = ::sim::normal_pair_double(state);                                                                 \
        return make_double2(exp(fma(stddev, x.x, mean)), exp(fma(stddev, x.y, mean)));                                \
    }                                                                                                                 \
    SIM_INLINE float curand_log_normal(STATE* state, float mean, float stddev) {                                      \
        return ::sim::one_of_pair(state->boxmuller_flag, state->boxmuller_extra, 2, state, SIM_PAIR(normal_pair),     \
                                  [=](float x) { return expf(fmaf(stddev, x, mean)); });                              \
    }                                                                                                                 \
    SIM_INLINE double curand_log_normal_double(STATE* state, double mean, double stddev) {                            \
        return ::sim::one_of_pair(state->boxmuller_flag_double, state->boxmuller_extra_double, 2, state,              \
                                  SIM_PAIR(normal_pair_double), [=](double x) { return exp(fma(stddev, x, mean)); }); \
    }
SIM_NORMAL(curandStateXORWOW_t)
SIM_NORMAL(curandStatePhilox4_32_10_t)
#undef SIM_NORMAL
#undef SIM_PAIR

#define SIM_NORMAL4(name, T, half)                                                    \
    template <typename... Parameters>                                                 \
    SIM_INLINE T name(curandStatePhilox4_32_10_t* state, Parameters... parameters) {  \
        auto first = half(state, parameters...), second = half(state, parameters...); \
        return make_##T(first.x, first.y, second.x, second.y);                        \
    }
SIM_NORMAL4(curand_normal4, float4, curand_normal2)
SIM_NORMAL4(curand_normal4_double, double4, curand_normal2_double)
SIM_NORMAL4(curand_log_normal4, float4, curand_log_normal2)
SIM_NORMAL4(curand_log_normal4_double, double4, curand_log_normal2_double)
#undef SIM_NORMAL4
