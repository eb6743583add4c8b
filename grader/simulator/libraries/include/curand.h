// cuRAND on the host, for whole programs. The generators are kernels that use the device API, so the checks see their
// writes. XORWOW and Philox4x32-10 are available. They generate numbers in the same order as curandCreateGeneratorHost
// in cuRAND 10.4.
#pragma once
#define CURAND_H_

#include <stdlib.h>

#include "curand_kernel.h"
#include "sim/for_each_index.h"

#define CURAND_VER_MAJOR 10
#define CURAND_VER_MINOR 4
#define CURAND_VERSION 10400

enum curandStatus_t {
    CURAND_STATUS_SUCCESS = 0,
    CURAND_STATUS_VERSION_MISMATCH = 100,
    CURAND_STATUS_NOT_INITIALIZED = 101,
    CURAND_STATUS_ALLOCATION_FAILED = 102,
    CURAND_STATUS_TYPE_ERROR = 103,
    CURAND_STATUS_OUT_OF_RANGE = 104,
    CURAND_STATUS_LENGTH_NOT_MULTIPLE = 105,
    CURAND_STATUS_DOUBLE_PRECISION_REQUIRED = 106,
    CURAND_STATUS_LAUNCH_FAILURE = 201,
    CURAND_STATUS_PREEXISTING_FAILURE = 202,
    CURAND_STATUS_INITIALIZATION_FAILED = 203,
    CURAND_STATUS_ARCH_MISMATCH = 204,
    CURAND_STATUS_INTERNAL_ERROR = 999
};
// The supported generators; other names do not compile.
enum curandRngType_t {
    CURAND_RNG_PSEUDO_DEFAULT = 100,
    CURAND_RNG_PSEUDO_XORWOW = 101,
    CURAND_RNG_PSEUDO_PHILOX4_32_10 = 161
};
enum curandOrdering_t {
    CURAND_ORDERING_PSEUDO_BEST = 100,
    CURAND_ORDERING_PSEUDO_DEFAULT = 101,
    CURAND_ORDERING_PSEUDO_LEGACY = 103
};

struct curandGenerator_st {
    curandRngType_t type;
    bool on_host;
    cudaStream_t stream = nullptr;
    // `position`: the index of the next draw (XORWOW) or of the next number (Philox)
    unsigned long long seed = 0, offset = 0, position = 0;
    curandStateXORWOW_t* states = nullptr;
};
typedef curandGenerator_st* curandGenerator_t;

namespace sim {

constexpr unsigned xorwow_states = 4096, philox_states = 65536;

// Draws `count` numbers at once: four for Philox, one or two for XORWOW.
template <typename State>
SIM_INLINE void draw_uniform(State* state, unsigned* out, int count) {
    for (int i = 0; i < count; ++i) out[i] = curand(state);
}
template <typename State>
SIM_INLINE void draw_uniform(State* state, float* out, int count) {
    for (int i = 0; i < count; ++i) out[i] = curand_uniform(state);
}
SIM_INLINE void draw_uniform(curandStateXORWOW_t* state, double* out, int) { *out = curand_uniform_double(state); }
SIM_INLINE void draw_uniform(curandStatePhilox4_32_10_t* state, double* out, int count) {
    for (int i = 0; i < count; i += 2) {
        double2 pair = curand_uniform2_double(state);
        out[i] = pair.x, out[i + 1] = pair.y;
    }
}
template <typename State>
SIM_INLINE float2 draw_pair(State* state, float) {
    return curand_normal2(state);
}
template <typename State>
SIM_INLINE double2 draw_pair(State* state, double) {
    return curand_normal2_double(state);
}
template <typename State, typename T>
SIM_INLINE void draw_normal(State* state, T* out, int count, T mean, T stddev, bool log_normal) {
    for (int i = 0; i < count; i += 2) {
        auto pair = draw_pair(state, mean);
        T x = mean + stddev * pair.x, y = mean + stddev * pair.y;
        out[i] = log_normal ? exp(x) : x, out[i + 1] = log_normal ? exp(y) : y;
    }
}

template <typename F>
SIM_INLINE void generate_each(curandGenerator_t generator, const char* name, size_t n, F f) {
    if (generator->on_host)
        for (size_t i = 0; i < n; ++i) f(static_cast<ptrdiff_t>(i));
    else
        for_each_index(generator->stream, name, static_cast<ptrdiff_t>(n), f);
}

// Fills `out` with XORWOW: consecutive draws come from 4096 states in turn.
template <typename T, typename F>
SIM_INLINE curandStatus_t from_xorwow(curandGenerator_t generator, const char* name, T* out, size_t n, int count,
                                      F draw) {
    if (n % static_cast<size_t>(count)) return CURAND_STATUS_LENGTH_NOT_MULTIPLE;
    unsigned long long seed = generator->seed, position = generator->position;
    if (!generator->states) {
        size_t bytes = xorwow_states * sizeof(curandStateXORWOW_t);
        if (generator->on_host)
            generator->states = static_cast<curandStateXORWOW_t*>(malloc(bytes));
        else if (cudaMalloc(&generator->states, bytes))
            return CURAND_STATUS_ALLOCATION_FAILED;
        auto* made = generator->states;
        generate_each(generator, name, xorwow_states, [=](ptrdiff_t i) {
            auto t = static_cast<unsigned long long>(i);
            curand_init(seed, t, (position + xorwow_states - 1 - t) / xorwow_states, made + i);
        });
    }
    auto* states = generator->states;
    size_t draws = n / static_cast<size_t>(count);
    generate_each(generator, name, draws < xorwow_states ? draws : xorwow_states, [=](ptrdiff_t i) {
        auto* state = states + (position + static_cast<unsigned long long>(i)) % xorwow_states;
        for (size_t k = static_cast<size_t>(i); k < draws; k += xorwow_states)
            draw(state, out + k * static_cast<size_t>(count), count);
    });
    generator->position += draws;
    return CURAND_STATUS_SUCCESS;
}
// Fills `out` with Philox: consecutive blocks of four numbers come from 65536 sequences in turn. Doubles use two
// blocks.
template <typename T, typename F>
SIM_INLINE curandStatus_t from_philox(curandGenerator_t generator, const char* name, T* out, size_t n, F draw) {
    unsigned long long seed = generator->seed, begin = generator->position, end = begin + n;
    generate_each(generator, name, static_cast<size_t>((end + 3) / 4 - begin / 4), [=](ptrdiff_t i) {
        unsigned long long block = begin / 4 + static_cast<unsigned long long>(i);
        curandStatePhilox4_32_10_t state;
        curand_init(seed, block % philox_states, block / philox_states * sizeof(T), &state);
        T four[4];
        draw(&state, four, 4);
        for (unsigned long long k = 0; k < 4; ++k)
            if (4 * block + k >= begin && 4 * block + k < end) out[4 * block + k - begin] = four[k];
    });
    generator->position = end;
    return CURAND_STATUS_SUCCESS;
}
template <typename T, typename F>
SIM_INLINE curandStatus_t generate(curandGenerator_t generator, const char* name, T* out, size_t n, int count, F draw) {
    if (!generator) return CURAND_STATUS_NOT_INITIALIZED;
    if (generator->type == CURAND_RNG_PSEUDO_PHILOX4_32_10) return from_philox(generator, name, out, n, draw);
    return from_xorwow(generator, name, out, n, count, draw);
}

SIM_INLINE curandStatus_t restart(curandGenerator_t generator) {
    if (!generator) return CURAND_STATUS_NOT_INITIALIZED;
    if (generator->on_host)
        free(generator->states);
    else
        cudaFree(generator->states);
    generator->states = nullptr;
    generator->position = generator->offset;
    return CURAND_STATUS_SUCCESS;
}

}  // namespace sim

inline curandStatus_t curandCreateGenerator(curandGenerator_t* generator, curandRngType_t type) {
    *generator = new curandGenerator_st{type, false};
    return CURAND_STATUS_SUCCESS;
}
inline curandStatus_t curandCreateGeneratorHost(curandGenerator_t* generator, curandRngType_t type) {
    *generator = new curandGenerator_st{type, true};
    return CURAND_STATUS_SUCCESS;
}
SIM_INLINE curandStatus_t curandDestroyGenerator(curandGenerator_t generator) {
    curandStatus_t status = ::sim::restart(generator);
    delete generator;
    return status;
}
inline curandStatus_t curandSetStream(curandGenerator_t generator, cudaStream_t stream) {
    generator->stream = stream;
    return CURAND_STATUS_SUCCESS;
}
SIM_INLINE curandStatus_t curandSetPseudoRandomGeneratorSeed(curandGenerator_t generator, unsigned long long seed) {
    generator->seed = seed;
    return ::sim::restart(generator);
}
SIM_INLINE curandStatus_t curandSetGeneratorOffset(curandGenerator_t generator, unsigned long long offset) {
    generator->offset = offset;
    return ::sim::restart(generator);
}
inline curandStatus_t curandSetGeneratorOrdering(curandGenerator_t, curandOrdering_t) { return CURAND_STATUS_SUCCESS; }
inline curandStatus_t curandGenerateSeeds(curandGenerator_t) { return CURAND_STATUS_SUCCESS; }
inline curandStatus_t curandGetVersion(int* version) {
    *version = CURAND_VERSION;
    return CURAND_STATUS_SUCCESS;
}

#define SIM_UNIFORM(name, T)                                                                                  \
    SIM_INLINE curandStatus_t name(curandGenerator_t generator, T* out, size_t n) {                           \
        return ::sim::generate(generator, #name, out, n, 1,                                                   \
                               [](auto* state, T* to, int count) { ::sim::draw_uniform(state, to, count); }); \
    }
SIM_UNIFORM(curandGenerate, unsigned int)
SIM_UNIFORM(curandGenerateUniform, float)
SIM_UNIFORM(curandGenerateUniformDouble, double)
#undef SIM_UNIFORM
#define SIM_NORMAL(name, T, log_normal)                                                               \
    SIM_INLINE curandStatus_t name(curandGenerator_t generator, T* out, size_t n, T mean, T stddev) { \
        return ::sim::generate(generator, #name, out, n, 2, [=](auto* state, T* to, int count) {      \
            ::sim::draw_normal(state, to, count, mean, stddev, log_normal);                           \
        });                                                                                           \
    }
SIM_NORMAL(curandGenerateNormal, float, false)
SIM_NORMAL(curandGenerateNormalDouble, double, false)
SIM_NORMAL(curandGenerateLogNormal, float, true)
SIM_NORMAL(curandGenerateLogNormalDouble, double, true)
#undef SIM_NORMAL
