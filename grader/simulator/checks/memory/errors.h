// Findings about errors that the runtime itself detects, also in a launch without checks.
#pragma once

#include "checks/report/findings.h"
#include "runtime/thread.h"

namespace sim::checks {

Finding finding_for(FindingKind kind, const Thread* thread, const void* address);

}  // namespace sim::checks
