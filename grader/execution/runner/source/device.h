// The runner's interface to a device. device_simulator.cpp and device_cuda.cu implement it; a runner is linked with one
// of them.
#pragma once

#include "protocol.h"
#include "wire.h"

namespace device {

// Initializes the device, before there is a kernel to load. On failure adds the reason to the reply and returns false.
bool prepare(Text& reply);

// Loads the simulator (if there is one), the settings and the kernel from the lines of a "load" packet. On failure adds
// the reason to the reply and returns false.
bool load(char* lines, Text& reply);

// Returns the function that unpacks the arguments and calls a launcher (its thunk), or null.
Thunk find(const char* launcher);

// Copies the tensors to the device, calls the launcher once, and copies the outputs back to the mapped file. Adds
// remarks to the reply; returns the CUDA error code.
int call(Call& call, Thunk thunk, Text& reply);

// Calls the launcher many times, in turn with each set of arguments, and writes the time of each run to the report.
int time(Call& call, Thunk thunk, Text& reply);

// Uses the device and maps memory a few times, so that the following call is faster. The runner does this before every
// timed call; otherwise a submission could gain an advantage by doing it itself.
void wake();

// Maps device memory that the parent allocated, after it has unmapped the memory of the previous call. On failure adds
// the reason to the reply and returns false.
bool map(int file, size_t bytes, Text& reply);

// Returns the address of the parent's device memory, which `map` has mapped.
unsigned char* mapped_memory();

// Unmaps the parent's device memory.
void unmap();

// Calls the launcher once on the mapped memory, whose outputs begin at byte `outputs`. Waits until the device is idle.
int run(Call& call, size_t outputs, Thunk thunk, Text& reply);

// Returns the block and thread that last wrote a byte of a tensor of the last call: block x y z, thread x y z.
bool writer(const char* tensor, size_t offset, unsigned found[6]);

}  // namespace device
