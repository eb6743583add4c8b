// What kernels have printed.
#pragma once

namespace sim {

const char* take_output();  // since the last call; valid until the next one
void flush_output();        // to standard output

}  // namespace sim
