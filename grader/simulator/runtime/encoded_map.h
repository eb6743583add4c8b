// The simulator's own layout of the 128 bytes of a CUtensorMap. NVIDIA's layout is not documented.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "cuda.h"

namespace sim {

struct EncodedMap {
    uint64_t address;
    uint64_t stride[4];  // bytes, from dimension 1 on
    uint32_t last[5];    // size of each dimension minus 1, because a size of 2^32 is allowed
    uint16_t box[5];
    uint8_t step[5];
    uint8_t dimensions, type, swizzle, fill_nan;
    uint64_t checksum;  // distinguishes a map from other bytes
};
static_assert(sizeof(EncodedMap) <= sizeof(CUtensorMap), "a map has 128 bytes");

inline uint64_t checksum(const EncodedMap& map) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(&map);
    uint64_t sum = 0x9E3779B97F4A7C15u;
    for (size_t i = 0; i < offsetof(EncodedMap, checksum); ++i) sum = (sum ^ bytes[i]) * 0x100000001B3u;
    return sum;
}

}  // namespace sim
