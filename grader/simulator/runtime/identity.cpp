// threadIdx and related values. In host code, where no CUDA thread runs, they are zero.
#include "sim/identity.h"

#include <stdio.h>

#include "events.h"
#include "sim/error_codes.h"
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

void require_launch_bounds(unsigned most) {
    Thread* self = current_thread;
    if (!self || self->block->thread_count <= most) return;
    const Launch& launch = *self->block->launch;
    static char why[120];
    snprintf(why, sizeof why, "a block of %u threads exceeds the kernel's __launch_bounds__ of %u",
             self->block->thread_count, most);
    events::refused(&launch, launch.kernel_name, cudaErrorInvalidValue, why, launch.caller);
    kill_launch(cudaErrorInvalidValue);
}

}  // namespace sim
