// The error that cudaGetLastError returns, one per host thread.
#pragma once

namespace sim {

int set_error(int cuda_error);  // remembers it unless it is 0; returns it
int take_last_error();          // and forgets it
int peek_last_error();

}  // namespace sim
