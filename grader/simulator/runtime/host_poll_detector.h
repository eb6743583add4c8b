// Detects a kernel without checks that polls memory shared with the host. Without checks its reads are not
// instrumented. So after half of the watchdog's time, that memory is protected at each of its ticks, and whenever a
// thread that let others run continues: the next access faults, is recorded, and is repeated.
#pragma once

#include <signal.h>

#include "thread.h"

namespace sim {

// Protects the memory shared with the host, so that the next access faults.
void sample_next_access();
// Returns whether a fault was caused by the protection that sample_next_access() sets. If so, the memory is accessible
// again and the access can be repeated.
bool was_poll_sample(int signal, const siginfo_t* info, const void* context);
// Makes the protected memory accessible again. Call it at the latest when the launch ends.
void end_poll_sampling();

// Returns whether the thread read the same value at the same address in each sample.
bool seen_polling(const Thread& thread);

}  // namespace sim
