#include "operation.h"

#include <pthread.h>

#include "arena.h"
#include "cuda_runtime_api.h"
#include "refuse.h"

namespace sim {

namespace {

// The mutex is recursive, because a host function that a stream runs may call the API.
struct RecursiveMutex {
    pthread_mutex_t mutex;
    RecursiveMutex() {
        pthread_mutexattr_t attributes;
        pthread_mutexattr_init(&attributes);
        pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
        pthread_mutex_init(&mutex, &attributes);
        pthread_mutexattr_destroy(&attributes);
    }
};

pthread_mutex_t* device_mutex() {
    static RecursiveMutex device;
    return &device.mutex;
}

}  // namespace

DeviceLock::DeviceLock() { pthread_mutex_lock(device_mutex()); }
DeviceLock::~DeviceLock() { pthread_mutex_unlock(device_mutex()); }

cudaError_t admissible(const Operation& operation) {
    if (current_fault()) return static_cast<cudaError_t>(current_fault());
    return operation.kind == OperationKind::kernel ? admissible_kernel(operation) : cudaSuccess;
}

cudaError_t perform(const Operation& operation) {
    if (operation.kind == OperationKind::host_function) {
        operation.function(operation.data);
        return cudaSuccess;
    }
    arena::DeviceMemoryAccess opened;
    switch (operation.kind) {
        case OperationKind::kernel:
            return perform_kernel(operation);
        case OperationKind::copy:
            return perform_copy(operation);
        case OperationKind::fill:
            return perform_fill(operation);
        case OperationKind::allocation:
            return perform_allocation(operation);
        case OperationKind::release:
            return perform_release(operation);
        case OperationKind::host_function:
            break;
    }
    return cudaErrorUnknown;
}

}  // namespace sim
