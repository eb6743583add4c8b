// What the runner wants of a device. Implemented twice: device_simulator.cpp and device_cuda.cu; a runner has one of
// them.
#pragma once

#include "protocol.h"
#include "wire.h"

namespace device {

// Loads the simulator (where there is one), the settings and the kernel from the lines of a "load" packet. On failure
// adds the reason to the reply and gives false.
bool load(char* lines, Text& reply);

// The thunk of a launcher, or null.
Thunk find(const char* launcher);

// Puts the tensors on the device, calls once, and copies the outputs back into the mapped file.
// Adds remarks to the reply; gives the CUDA error code.
int call(Call& call, Thunk thunk, Text& reply);

// Calls again and again over the sets of arguments and writes the time of each run to the report.
int time(Call& call, Thunk thunk, Text& reply);

// Who wrote a byte of a tensor of the last call: block x y z, thread x y z.
bool writer(const char* tensor, size_t offset, unsigned found[6]);

}  // namespace device
