// Whether a kernel without checks polls memory that the host shares. No read of it is seen there, so now and then the
// watchdog takes that memory away until the next access, which faults, is noted, and is done again.
#pragma once

#include <signal.h>

#include "thread.h"

namespace sim {

void look_at_next_access();
// Whether a fault came of that. Then nothing is amiss: the memory is there again.
bool was_looked_at(int signal, const siginfo_t* info, const void* context, const void* place);
// What was taken away is there again, at the end of a launch at the latest.
void end_looking();

// Whether the thread read one value at one place each time that somebody looked.
bool seen_polling(const Thread& thread);

}  // namespace sim
