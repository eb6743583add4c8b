// threadIdx and its relatives. In host code, where no thread runs, everything is zero.
#include "sim/identity.h"

#include "thread.h"

namespace sim {

uint3 thread_index() noexcept { return current_thread ? current_thread->index : uint3{0, 0, 0}; }

uint3 block_index() noexcept { return current_thread ? current_thread->block->index : uint3{0, 0, 0}; }

dim3 block_dimensions() noexcept { return current_thread ? current_thread->block->launch->block : dim3(0, 0, 0); }

dim3 grid_dimensions() noexcept { return current_thread ? current_thread->block->launch->grid : dim3(0, 0, 0); }

unsigned linear_thread_index() noexcept { return current_thread ? current_thread->linear : 0; }

unsigned lane_index() noexcept { return current_thread ? current_thread->lane : 0; }

unsigned warp_index() noexcept { return current_thread ? current_thread->warp->index : 0; }

bool on_device() noexcept { return current_thread != nullptr; }

bool is_cooperative() noexcept { return current_thread && current_thread->block->launch->cooperative; }

}  // namespace sim
