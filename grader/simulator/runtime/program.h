// A whole program with a main of its own, linked against libsim: what it leaves behind when it ends.
#pragma once

namespace sim {

// A launch is over. Where a signal that ends the program came while it ran, the program ends here.
void program_launch_ended(const char* kernel);

}  // namespace sim
