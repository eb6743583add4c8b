// How far an atomic operation or a fence reaches.
#pragma once

namespace sim {

enum class Scope : int { block, device, system };

}  // namespace sim
