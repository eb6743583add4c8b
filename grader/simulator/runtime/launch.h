// Launches, seen from the host.
#pragma once

#include "sim/launch.h"

namespace sim {

// The blocks that the simulated device can hold at once of a launch like this one.
unsigned long long resident_blocks(const LaunchConfig& config);

// Error codes of a configuration that CUDA would refuse, with the reason in words; 0 and null otherwise.
int validate(const LaunchConfig& config, const char** why);

}  // namespace sim
