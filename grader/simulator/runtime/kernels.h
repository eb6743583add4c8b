// Kernels by address: how to call them, and the limits set with cudaFuncSetAttribute.
#pragma once

#include <stddef.h>

#include "sim/dim.h"
#include "sim/globals.h"

namespace sim {

struct RegisteredKernel {
    const void* kernel;
    const char* name;
    KernelLauncher launcher;
};
bool find_kernel(const void* kernel, RegisteredKernel* found);

// Returns the bytes of dynamic shared memory that cudaFuncSetAttribute allowed this kernel; 0 without such a call. If
// the front end could not determine the kernel's address, pass null: the result is the largest limit of any kernel.
size_t requested_shared_limit(const void* kernel);
// Returns the bytes of dynamic shared memory that a launch of this kernel may request.
size_t shared_limit_of(const void* kernel);
// Returns the static bytes that earlier launches of this kernel used; 0 when unknown.
size_t static_shared_of(const void* kernel);
void remember_static_shared(const void* kernel, size_t bytes);
void forget_attributes();
// Returns the cluster dimensions from __cluster_dims__; zeros for a kernel without it.
dim3 cluster_dimensions_of(const void* kernel);
bool non_portable_cluster_allowed(const void* kernel);

}  // namespace sim
