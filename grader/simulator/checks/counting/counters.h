// The counters of each site, and the totals of a kernel.
#pragma once

#include <stdint.h>

namespace sim::checks {

struct Counters {
    uint64_t accesses;          // accesses of threads
    uint64_t requests;          // requests of warps: the k-th accesses of all lanes together
    uint64_t bytes;             // distinct bytes of each request, summed
    uint64_t sectors;           // global memory: distinct 32-byte sectors of each request, summed
    uint64_t ideal_sectors;     // sectors if the accesses were contiguous
    uint64_t wavefronts;        // shared memory: per request, the number of distinct words in its busiest bank
    uint64_t ideal_wavefronts;  // wavefronts that the distinct words need at least
    uint32_t worst_ways;        // ratio of wavefronts to ideal in the worst request, rounded up

    void add(const Counters& other) {
        accesses += other.accesses;
        requests += other.requests;
        bytes += other.bytes;
        sectors += other.sectors;
        ideal_sectors += other.ideal_sectors;
        wavefronts += other.wavefronts;
        ideal_wavefronts += other.ideal_wavefronts;
        if (worst_ways < other.worst_ways) worst_ways = other.worst_ways;
    }
};

}  // namespace sim::checks
