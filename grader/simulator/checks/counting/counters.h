// What is counted for each site, and the totals of a kernel.
#pragma once

#include <stdint.h>

namespace sim::checks {

struct Counters {
    uint64_t accesses;          // by threads
    uint64_t requests;          // by warps: the k-th access of each lane, together
    uint64_t bytes;             // distinct bytes of each request, summed
    uint64_t sectors;           // global memory: distinct 32-byte sectors of each request, summed
    uint64_t ideal_sectors;     // as many as the accesses would need side by side
    uint64_t wavefronts;        // shared memory: of each request as many as its busiest bank has words
    uint64_t ideal_wavefronts;  // as many as the distinct words need
    uint32_t worst_ways;        // wavefronts for an ideal one in the worst request, rounded up

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
