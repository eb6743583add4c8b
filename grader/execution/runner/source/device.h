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

// Uses the device and maps memory a few times: what a process of a submission could do for itself to be warm when its time
// is taken is done for all.
void wake();

// Maps the parent's memory of the device, in place of what was mapped before. On failure adds the reason to the reply
// and gives false.
bool map(int file, size_t bytes, Text& reply);

// Gives back what is mapped.
void unmap();

// Calls once on the mapped memory, outputs from byte `outputs` on, and waits until the device has come to rest.
int run(Call& call, size_t outputs, Thunk thunk, Text& reply);

// Who wrote a byte of a tensor of the last call: block x y z, thread x y z.
bool writer(const char* tensor, size_t offset, unsigned found[6]);

}  // namespace device
