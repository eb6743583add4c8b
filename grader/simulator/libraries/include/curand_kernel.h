// cuRAND's device API: the generators XORWOW and Philox4x32-10, whose numbers equal NVIDIA's bit for bit.
//
// XORWOW: G. Marsaglia, Xorshift RNGs, 2003. Philox: J. Salmon et al., Parallel random numbers: as easy as 1, 2, 3,
// 2011. The states have the fields and sizes of cuRAND's. Functions are always inlined: see sim/collective.h.
#pragma once

#include "sim/collective.h"
#include "vector_functions.h"

struct curandStateXORWOW {
    unsigned int d, v[5];
    int boxmuller_flag, boxmuller_flag_double;
    float boxmuller_extra;
    int sim_unused;  // padding in cuRAND; initialized, because copying the structure reads it
    double boxmuller_extra_double;
};
struct curandStatePhilox4_32_10 {
    uint4 ctr, output;
    uint2 key;
    unsigned int STATE;
    int boxmuller_flag, boxmuller_flag_double;
    float boxmuller_extra;
    double boxmuller_extra_double;
};
typedef curandStateXORWOW curandStateXORWOW_t, curandState_t, curandState;
typedef curandStatePhilox4_32_10 curandStatePhilox4_32_10_t;

#pragma GCC visibility push(default)
namespace sim {

// Computes the state words after n * 2^log2_unit steps. The function is in libsim and works on a copy of the state, so
// that the checks see no accesses.
void skip_xorwow(unsigned (&words)[5], unsigned long long n, unsigned log2_unit);

}  // namespace sim
#pragma GCC visibility pop

namespace sim {

SIM_INLINE uint4 philox_rounds(uint4 counter, uint2 key) {
    for (int round = 0; round < 10; ++round) {
        unsigned long long first = 0xd2511f53ull * counter.x, second = 0xcd9e8d57ull * counter.z;
        counter = make_uint4(static_cast<unsigned>(second >> 32) ^ counter.y ^ key.x, static_cast<unsigned>(second),
                             static_cast<unsigned>(first >> 32) ^ counter.w ^ key.y, static_cast<unsigned>(first));
        key = make_uint2(key.x + 0x9e3779b9u, key.y + 0xbb67ae85u);
    }
    return counter;
}

SIM_INLINE void skip(curandStateXORWOW* state, unsigned long long n, unsigned log2_unit) {
    unsigned words[5];
    for (int i = 0; i < 5; ++i) words[i] = state->v[i];
    skip_xorwow(words, n, log2_unit);
    for (int i = 0; i < 5; ++i) state->v[i] = words[i];
    if (log2_unit < 32) state->d += 362437u * static_cast<unsigned>(n << log2_unit);
}
// Adds to the 128-bit counter, whose upper half is the sequence, and computes its block of four numbers.
SIM_INLINE void skip_blocks(curandStatePhilox4_32_10* state, unsigned long long blocks, unsigned long long sequences) {
    uint4 counter = state->ctr;
    unsigned long long low = counter.x | static_cast<unsigned long long>(counter.y) << 32;
    unsigned long long high = counter.z | static_cast<unsigned long long>(counter.w) << 32;
    low += blocks;
    high += sequences + (low < blocks);
    counter = make_uint4(static_cast<unsigned>(low), static_cast<unsigned>(low >> 32), static_cast<unsigned>(high),
                         static_cast<unsigned>(high >> 32));
    state->ctr = counter;
    state->output = philox_rounds(counter, state->key);
}

template <typename State>
SIM_INLINE void forget_normals(State* state) {
    state->boxmuller_flag = state->boxmuller_flag_double = 0;
    state->boxmuller_extra = 0;
    state->boxmuller_extra_double = 0;
}

}  // namespace sim

SIM_INLINE void skipahead(unsigned long long n, curandStateXORWOW_t* state) { ::sim::skip(state, n, 0); }
SIM_INLINE void skipahead_sequence(unsigned long long n, curandStateXORWOW_t* state) { ::sim::skip(state, n, 67); }

SIM_INLINE void skipahead(unsigned long long n, curandStatePhilox4_32_10_t* state) {
    unsigned place = state->STATE + static_cast<unsigned>(n & 3);
    state->STATE = place & 3;
    ::sim::skip_blocks(state, n / 4 + (place > 3), 0);
}
SIM_INLINE void skipahead_sequence(unsigned long long n, curandStatePhilox4_32_10_t* state) {
    ::sim::skip_blocks(state, 0, n);
}

SIM_INLINE void curand_init(unsigned long long seed, unsigned long long subsequence, unsigned long long offset,
                            curandStateXORWOW_t* state) {
    unsigned t0 = 1099087573u * (static_cast<unsigned>(seed) ^ 0xaad26b49u);
    unsigned t1 = 2591861531u * (static_cast<unsigned>(seed >> 32) ^ 0xf7dcefddu);
    state->d = 6615241u + t1 + t0;
    state->v[0] = 123456789u + t0, state->v[1] = 362436069u ^ t0, state->v[2] = 521288629u + t1;
    state->v[3] = 88675123u ^ t1, state->v[4] = 5783321u + t0;
    state->sim_unused = 0;
    skipahead_sequence(subsequence, state);
    skipahead(offset, state);
    ::sim::forget_normals(state);
}
SIM_INLINE void curand_init(unsigned long long seed, unsigned long long subsequence, unsigned long long offset,
                            curandStatePhilox4_32_10_t* state) {
    state->ctr = make_uint4(0, 0, 0, 0);
    state->key = make_uint2(static_cast<unsigned>(seed), static_cast<unsigned>(seed >> 32));
    state->STATE = 0;
    skipahead_sequence(subsequence, state);
    skipahead(offset, state);
    ::sim::forget_normals(state);
}
SIM_INLINE unsigned int curand(curandStateXORWOW_t* state) {
    unsigned t = state->v[0] ^ state->v[0] >> 2, last = state->v[4];
    for (int i = 0; i < 4; ++i) state->v[i] = state->v[i + 1];
    last = last ^ last << 4 ^ t ^ t << 1;
    unsigned sum = state->d + 362437u;
    state->v[4] = last;
    state->d = sum;
    return last + sum;
}
SIM_INLINE unsigned int curand(curandStatePhilox4_32_10_t* state) {
    unsigned place = state->STATE;
    uint4 block = state->output;
    state->STATE = (place + 1) & 3;
    if (place == 3) ::sim::skip_blocks(state, 1, 0);
    return place == 0 ? block.x : place == 1 ? block.y : place == 2 ? block.z : block.w;
}
SIM_INLINE uint4 curand4(curandStatePhilox4_32_10_t* state) {
    uint4 a = state->output;
    ::sim::skip_blocks(state, 1, 0);
    uint4 b = state->output;
    switch (state->STATE) {
        case 1:
            return make_uint4(a.y, a.z, a.w, b.x);
        case 2:
            return make_uint4(a.z, a.w, b.x, b.y);
        case 3:
            return make_uint4(a.w, b.x, b.y, b.z);
        default:
            return a;
    }
}
#include "sim/random_uniform.h"
#include "sim/random_normal.h"

#include "curand.h"
