// How far an atomic operation or a fence reaches.
#pragma once

namespace sim {

enum class Scope : int { block, cluster, device, system };

}  // namespace sim
