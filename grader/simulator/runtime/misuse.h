// Ends the launch because an instruction was used in a way that PTX leaves undefined. The finding says why.
#pragma once

#include "scheduler.h"

namespace sim {

[[noreturn]] inline void misused(Thread& self, Site site, const char* why) {
    self.wait_site = site;
    events::sync_error(events::SyncError::instruction_misused, *self.block, &self, why);
    kill_launch(719);  // cudaErrorLaunchFailure
}

// cp.async.bulk and cp.reduce.async.bulk between shared and global memory.
void check_bulk_copy(Thread& self, Site site, const void* shared, const void* global, uint32_t bytes);

}  // namespace sim
