// Launches as the host sees them.
#pragma once

#include "sim/launch.h"

namespace sim {

// Returns the number of blocks with this configuration that can be resident on the simulated device at once.
unsigned long long resident_blocks(const LaunchConfig& config);

// CUDA's error for a configuration that CUDA would refuse, and the reason; otherwise 0 and null.
struct Refusal {
    int error = 0;
    const char* why = nullptr;
};
Refusal validate(const LaunchConfig& config);

}  // namespace sim
