// Common code of the headers for collective operations (cooperative groups, CUB, tensor cores).
//
// Their functions are always inlined, so that an access inside them is attributed to the line of the kernel that calls
// them. They receive the place of the call as a defaulted last argument, so that a finding names that line rather than
// one of the header.
#pragma once

#include <stdint.h>
#include <string.h>

#include "sim/identity.h"
#include "sim/warp.h"

#ifndef SIM_INLINE
#define SIM_INLINE __attribute__((always_inline, no_sanitize("object-size"))) inline
#endif

// A default argument that receives the line of the call.
#define SIM_CALLER ::sim::Site{__builtin_LINE(), 0}

namespace sim {

constexpr unsigned all_lanes = 0xffffffffu;

// A shuffle of a value of up to 32 bytes (the limit of cooperative groups and CUB), 8 bytes at a time.
template <typename T>
SIM_INLINE T shuffle_value(Site site, Shuffle kind, unsigned mask, const T& value, unsigned argument,
                           unsigned width = 32) {
    static_assert(std::is_trivially_copyable<T>::value && sizeof(T) <= 32,
                  "a group shuffles plain values of at most 32 bytes (half2 and bfloat162 are not plain)");
    constexpr size_t words = (sizeof(T) + 7) / 8;
    uint64_t bits[words] = {};
    memcpy(bits, static_cast<const void*>(&value), sizeof(T));
    for (size_t i = 0; i < words; ++i) bits[i] = warp_shuffle(site, kind, mask, bits[i], argument, width);
    T result(value);
    memcpy(static_cast<void*>(&result), bits, sizeof(T));
    return result;
}

// The number of lanes of `mask` below this one: a lane's rank in a group.
SIM_INLINE unsigned rank_in(unsigned mask) {
    return static_cast<unsigned>(__builtin_popcount(mask & ((1u << lane_index()) - 1)));
}

// Returns the lane with a rank in the group, or 32 if there is none.
inline unsigned lane_of_rank(unsigned mask, unsigned rank) {
    for (; rank > 0 && mask; --rank) mask &= mask - 1;
    return mask ? static_cast<unsigned>(__builtin_ctz(mask)) : 32;
}

}  // namespace sim
