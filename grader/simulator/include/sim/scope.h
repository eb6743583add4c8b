// The scope of an atomic operation or a fence.
#pragma once

namespace sim {

enum class Scope : int { block, cluster, device, system };

}  // namespace sim
