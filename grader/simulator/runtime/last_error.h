// The error that cudaGetLastError returns.
#pragma once

namespace sim {

int set_error(int cuda_error);  // stores an error other than 0 for this host thread; returns `error`
int take_last_error();          // returns the stored error and clears it
int peek_last_error();

// A kernel that faults leaves the device unusable, as on a GPU: every later call returns its error until
// cudaDeviceReset or sim_reset.
void set_fault(int cuda_error);
int current_fault();  // 0: none
void forget_fault();

}  // namespace sim
