// Sampled checks: only some launches, and in each of them only some blocks, run with checks (`grader run
// --check-blocks N --check-launches N`). The other blocks run as fast as without checks, and results stay the same.
#pragma once

#include <stdint.h>

namespace sim::sampling {

// The choice of a launch's clusters. Each subset of the requested size is equally likely.
struct Clusters {
    uint64_t left;    // clusters for which next() was not called yet
    uint64_t needed;  // how many of them to choose
    uint64_t random;

    // Returns whether to check the next cluster.
    bool next();
};

// Counts this launch, and returns whether it runs with checks: one of the first launches of its kernel.
bool checks_launch(const char* kernel);
// Chooses the clusters of a launch with checks.
Clusters choose_clusters(uint64_t clusters, unsigned cluster_size);

struct Totals {
    uint64_t launches;
    uint64_t checked_launches;
    uint64_t blocks;  // of the checked launches, as far as they have started
    uint64_t checked_blocks;
    uint64_t seed;
};
extern Totals totals;

// Returns whether only some launches or blocks are checked. Otherwise the totals mean nothing.
bool is_on();
void forget();

}  // namespace sim::sampling
