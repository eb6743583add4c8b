// __ldg and ld.global.nc: loads through a cache that does not see writes of the running kernel.
//
// PTX requires that the memory is read-only while the kernel runs, so a write by any thread, before or after the load, is
// an error. The loads from memory that kernels may write are compared with the writes when the launch ends.
#pragma once

#include "checks/core/state.h"

namespace sim::checks {

void note_read_only_load(ThreadState& thread, uintptr_t address, unsigned bytes, const void* code);
void report_read_only_loads();  // call it at the end of a launch
void forget_read_only_loads();

}  // namespace sim::checks
