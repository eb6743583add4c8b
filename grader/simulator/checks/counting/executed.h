// How often each basic block was executed, and by how many lanes of its warps.
//
// Only kernels that were built with -fsanitize-coverage=trace-pc tell: they call __sanitizer_cov_trace_pc at the start
// of each basic block, which the return address of the call names.
#pragma once

#include <stdint.h>

#include "checks/core/containers.h"

namespace sim::checks {

struct BlockState;

struct ExecutedCode {
    const void* address;
    unsigned kernel;
    uint64_t executions;       // by threads
    uint64_t warp_executions;  // as few as a warp needs: of each warp the most executions of one lane, summed
    uint64_t lanes;            // that those could have had: the lanes that exist, so that a partial warp may be full
};

// Counts what the block's threads have executed for the running kernel, and forgets it in the block.
void collect_executed(BlockState& block);
Growable<ExecutedCode>& executed_code();
void forget_executed();

}  // namespace sim::checks
