// What kernels have printed.
#pragma once

namespace sim {

const char* take_output();  // since the last call; valid until the next one
void show_output();         // to standard output, unless somebody takes it
void keep_output();         // from now on somebody takes it

}  // namespace sim
