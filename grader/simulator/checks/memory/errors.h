// Findings about errors that the runtime notices itself, also when a launch runs without checks.
#pragma once

#include "checks/report/findings.h"
#include "runtime/thread.h"

namespace sim::checks {

Finding finding_for(FindingKind kind, const Thread* thread, const void* address);

}  // namespace sim::checks
