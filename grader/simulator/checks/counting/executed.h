// How often each basic block was executed, and by how many lanes of its warps.
//
// Only for kernels built with -fsanitize-coverage=trace-pc: they call __sanitizer_cov_trace_pc at the start of each
// basic block, and the call's return address identifies the block.
#pragma once

#include <stdint.h>

#include "checks/core/containers.h"

namespace sim::checks {

struct BlockState;

struct ExecutedCode {
    const void* address;
    unsigned kernel;
    uint64_t executions;       // executions by threads
    uint64_t warp_executions;  // the minimum for a warp: per warp, the largest count of one lane, summed
    // lanes that those executions could have had; only existing lanes count, so a partial warp can be full
    uint64_t lanes;
};

// Adds the counts of the block's threads to the running kernel, and clears them in the block.
void collect_executed(BlockState& block);
Growable<ExecutedCode>& executed_code();
void forget_executed();

}  // namespace sim::checks
