// Counts how often each basic block was executed, and by how many lanes of the warps.
//
// Only kernels built with -fsanitize-coverage=trace-pc are counted. They call __sanitizer_cov_trace_pc at the start of
// each basic block, and the call's return address identifies the block.
#pragma once

#include <stdint.h>

#include "checks/core/containers.h"

namespace sim::checks {

struct BlockState;

struct ExecutedCode {
    const void* address;
    unsigned kernel;
    uint64_t executions;       // executions by threads
    uint64_t warp_executions;  // lower bound: the largest count of one lane of each warp, summed over warps
    // Executions if all existing lanes of the warps had taken part. Lanes past the block's end do not exist.
    uint64_t lanes;
};

// Adds the counts of the block's threads to the running kernel, and clears them in the block.
void collect_executed(BlockState& block);
Growable<ExecutedCode>& executed_code();
void forget_executed();

}  // namespace sim::checks
