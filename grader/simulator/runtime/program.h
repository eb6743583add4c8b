// A whole program with a main of its own, linked against libsim: what it leaves behind when it ends.
#pragma once

namespace sim {

// A launch is over. Where a signal that ends the program came while it ran, the program ends here.
void program_launch_ended(const char* kernel);

bool is_program();
// A kernel waits for what the host would do while it runs, at this place: no fault of the program, which ends all the same.
void program_waits_for_host(const char* kernel, const void* place);
// The same for a call that asks for more memory of the host than this process reserved.
void program_wants_too_much(const char* call, const void* place);

}  // namespace sim
