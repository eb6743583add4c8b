// Memory that kernels take and give back.
#pragma once

namespace sim {

// False for memory of the host, and on the host. What the heap did not give, or has again already, is a finding.
bool given_back_by_kernel(void* pointer, const void* caller);

}  // namespace sim
