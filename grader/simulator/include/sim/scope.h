// The scope and the memory order of an atomic operation or a fence.
#pragma once

namespace sim {

enum class Scope : int { block, cluster, device, system };
enum class MemoryOrder : int { relaxed, acquire, release, acq_rel };

constexpr bool acquires(MemoryOrder order) { return order == MemoryOrder::acquire || order == MemoryOrder::acq_rel; }
constexpr bool releases(MemoryOrder order) { return order == MemoryOrder::release || order == MemoryOrder::acq_rel; }

}  // namespace sim
