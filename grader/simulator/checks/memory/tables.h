// Tables of constants outside of __constant__ memory: `static const` and `constexpr` arrays.
//
// A GPU reads such a table from global or local memory. The simulator reads it from the read-only data of the kernel's
// library, and does not count these reads. So a submission may read only small tables.
#pragma once

#include "checks/core/site.h"
#include "checks/core/state.h"

namespace sim::checks {

void note_table_read(ThreadState& thread, const AccessSite& site, uintptr_t address);

}  // namespace sim::checks
