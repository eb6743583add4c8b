// threadIdx, blockIdx, blockDim, gridDim and values derived from them.
//
// The functions are defined in libsim and have the attribute `const`, because a thread's identity never changes. So the
// compiler may call a function once and reuse the result. They are never inlined into kernel code, so the checks do not
// see their reads of the simulator's state.
#pragma once

#include "sim/dim.h"

#pragma GCC visibility push(default)
namespace sim {

[[gnu::const]] uint3 thread_index() noexcept;
[[gnu::const]] uint3 block_index() noexcept;
[[gnu::const]] dim3 block_dimensions() noexcept;
[[gnu::const]] dim3 grid_dimensions() noexcept;
[[gnu::const]] unsigned linear_thread_index() noexcept;  // index of the thread in its block, x fastest
[[gnu::const]] unsigned lane_index() noexcept;           // 0..31
[[gnu::const]] unsigned warp_index() noexcept;           // number of the warp in its block
[[gnu::const]] bool on_device() noexcept;                // false in host code
[[gnu::const]] bool is_cooperative() noexcept;           // launched by cudaLaunchCooperativeKernel

// Called by each thread of a kernel with __launch_bounds__(most): refuses a launch with more threads per block.
void require_launch_bounds(unsigned most);

}  // namespace sim
#pragma GCC visibility pop

#ifndef SIM_HOST_FILE
#define threadIdx (::sim::thread_index())
#define blockIdx (::sim::block_index())
#define blockDim (::sim::block_dimensions())
#define gridDim (::sim::grid_dimensions())
#endif

constexpr int warpSize = 32;
