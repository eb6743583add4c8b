// Launches as the host sees them.
#pragma once

#include "sim/launch.h"

namespace sim {

// Returns the number of blocks with this configuration that can be resident on the simulated device at once.
unsigned long long resident_blocks(const LaunchConfig& config);

// Returns CUDA's error for a configuration that CUDA would refuse, with the reason in *why; otherwise 0 and null.
int validate(const LaunchConfig& config, const char** why);

}  // namespace sim
