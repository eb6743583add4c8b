// Operations of a stream: a kernel, a copy, a fill, a host function. An operation is performed when it is submitted, or
// stored with a copy of its arguments as a graph node.
#pragma once

#include <stddef.h>

#include "sim/launch.h"

namespace sim {

enum class OperationKind { kernel, copy, fill, host_function, allocation, release };

// A rectangle of bytes; one row unless the call was a 2D one.
struct Rows {
    void* to;
    size_t to_pitch;
    const void* from;  // source of a copy
    size_t from_pitch;
    size_t width;
    size_t height;
    int value;           // value of a fill
    size_t element = 1;  // size of the fill's element: the lowest `element` bytes of `value` are repeated
};

struct Operation {
    OperationKind kind;
    const char* call;    // name of the runtime API function, or of the kernel
    const void* caller;  // return address of the call; null for a kernel
    LaunchConfig config = LaunchConfig(dim3(), dim3());
    LaunchBody body = {};
    Rows rows = {};
    cudaMemcpyKind direction = cudaMemcpyDefault;
    cudaHostFn_t function = nullptr;
    void* data = nullptr;
    void** pointer = nullptr;  // result of an allocation
};

// Runs the operation now. The checks must already have its place in the order of streams.
cudaError_t perform(const Operation& operation);
// Checks the arguments as CUDA does at the time of the call, whether the operation runs now or later. Reports an
// invalid one and returns its error; otherwise returns cudaSuccess.
cudaError_t admissible(const Operation& operation);

// launch.cpp
cudaError_t perform_kernel(const Operation& operation);
cudaError_t admissible_kernel(const Operation& operation);
// host_memory.cpp
cudaError_t perform_copy(const Operation& operation);
cudaError_t perform_fill(const Operation& operation);
cudaError_t perform_allocation(const Operation& operation);
cudaError_t perform_release(const Operation& operation);

// The lock that serializes operations. The host thread that submits an operation holds it while the operation runs.
class DeviceLock {
  public:
    DeviceLock();
    ~DeviceLock();
    DeviceLock(const DeviceLock&) = delete;
    DeviceLock& operator=(const DeviceLock&) = delete;
};

}  // namespace sim
