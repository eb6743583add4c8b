// What a stream is asked to do: a kernel, a copy, a fill, a function of the host. Performed when it is submitted, or kept
// with its arguments as they were then, as a node of a graph.
#pragma once

#include <stddef.h>

#include "sim/launch.h"

namespace sim {

enum class OperationKind { kernel, copy, fill, host_function, allocation, release };

// A rectangle of bytes; one row unless the call was a 2D one.
struct Rows {
    void* to;
    size_t to_pitch;
    const void* from;  // of a copy
    size_t from_pitch;
    size_t width;
    size_t height;
    int value;           // of a fill
    size_t element = 1;  // bytes of it that are repeated, the lowest first
};

struct Operation {
    OperationKind kind;
    const char* call;    // the function of the runtime API, or the kernel's name
    const void* caller;  // who called it; null for a kernel
    LaunchConfig config = LaunchConfig(dim3(), dim3());
    LaunchBody body = {};
    Rows rows = {};
    cudaMemcpyKind direction = cudaMemcpyDefault;
    cudaHostFn_t function = nullptr;
    void* data = nullptr;
    void** pointer = nullptr;  // where an allocation goes
};

// Runs it now. Its place in the order of streams was told to the checks before.
cudaError_t perform(const Operation& operation);
// What CUDA checks when the call is made, whether it runs now or later: refuses it, or cudaSuccess.
cudaError_t admissible(const Operation& operation);

// launch.cpp
cudaError_t perform_kernel(const Operation& operation);
cudaError_t admissible_kernel(const Operation& operation);
// host_memory.cpp
cudaError_t perform_copy(const Operation& operation);
cudaError_t perform_fill(const Operation& operation);
cudaError_t perform_allocation(const Operation& operation);
cudaError_t perform_release(const Operation& operation);

// One operation at a time; held while one runs, by the host thread that submitted it.
class DeviceLock {
  public:
    DeviceLock();
    ~DeviceLock();
    DeviceLock(const DeviceLock&) = delete;
    DeviceLock& operator=(const DeviceLock&) = delete;
};

}  // namespace sim
