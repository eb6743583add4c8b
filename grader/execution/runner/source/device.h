// The runner's interface to a device. Implemented by device_simulator.cpp and device_cuda.cu; a runner links one of
// them.
#pragma once

#include "protocol.h"
#include "wire.h"

namespace device {

// Loads the simulator (if there is one), the settings and the kernel from the lines of a "load" packet. On failure adds
// the reason to the reply and returns false.
bool load(char* lines, Text& reply);

// Returns the thunk of a launcher, or null.
Thunk find(const char* launcher);

// Copies the tensors to the device, calls once, and copies the outputs back to the mapped file. Adds remarks to the
// reply; returns the CUDA error code.
int call(Call& call, Thunk thunk, Text& reply);

// Calls repeatedly over the sets of arguments and writes the time of each run to the report.
int time(Call& call, Thunk thunk, Text& reply);

// Uses the device and maps memory a few times. A submission's process could do this by itself to be warm when it is
// timed, so the runner does it for all.
void wake();

// Maps the parent's device memory, in place of what was mapped before. On failure adds the reason to the reply and
// returns false.
bool map(int file, size_t bytes, Text& reply);

// Unmaps it.
void unmap();

// Calls once on the mapped memory, with outputs from byte `outputs` on, and waits until the device is idle.
int run(Call& call, size_t outputs, Thunk thunk, Text& reply);

// Returns the block and thread that last wrote a byte of a tensor of the last call: block x y z, thread x y z.
bool writer(const char* tensor, size_t offset, unsigned found[6]);

}  // namespace device
