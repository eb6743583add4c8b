// A whole program with its own main, linked against libsim: the report that it writes when it ends.
#pragma once

namespace sim {

// Called when a launch has ended. If a signal that ends the program arrived during the launch, the program ends here.
void program_launch_ended(const char* kernel);
// Tells a program that has run for long with all checks how to save time. Called from time to time.
void program_notes_time();

bool is_program();
// Called when a kernel waits for the host, which continues only after the kernel. The simulator cannot run such a
// program, so the program ends, without a finding.
void program_waits_for_host(const char* kernel, const void* place);
// Ends the program in the same way, because a call requests more host memory than this process has reserved.
void program_wants_too_much(const char* call, const void* place);

}  // namespace sim
