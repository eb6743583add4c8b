// Streams and events. Every call has finished when it returns, so a stream has nothing to do, and an event is a time.
#include <stdlib.h>
#include <time.h>

#include "cuda_runtime_api.h"
#include "output.h"
#include "refuse.h"

struct CUstream_st {
    int priority;
};

struct CUevent_st {
    bool recorded;
    bool timing;
    int64_t nanoseconds;
};

using namespace sim;

namespace {

template <typename T>
cudaError_t create(const char* call, T** result) {
    *result = static_cast<T*>(calloc(1, sizeof(T)));
    return *result ? cudaSuccess : refuse(call, cudaErrorMemoryAllocation, "no memory");
}

cudaError_t pending_error() { return static_cast<cudaError_t>(peek_last_error()); }

}  // namespace

extern "C" {

cudaError_t cudaStreamCreate(cudaStream_t* stream) { return create("cudaStreamCreate", stream); }

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int) {
    return create("cudaStreamCreateWithFlags", stream);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int, int priority) {
    cudaError_t error = create("cudaStreamCreateWithPriority", stream);
    if (!error) (*stream)->priority = priority;
    return error;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    if (!stream || stream == cudaStreamLegacy || stream == cudaStreamPerThread) {
        return refuse("cudaStreamDestroy", cudaErrorInvalidResourceHandle, "the default stream cannot be destroyed");
    }
    free(stream);
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t) {
    show_output();
    return pending_error();
}

cudaError_t cudaStreamQuery(cudaStream_t) { return pending_error(); }

cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned int) { return cudaSuccess; }

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* data, unsigned int) {
    callback(stream, pending_error(), data);
    return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t, cudaHostFn_t function, void* data) {
    function(data);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
    *least = 0;
    *greatest = -5;
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
    cudaError_t error = create("cudaEventCreate", event);
    if (!error) (*event)->timing = !(flags & cudaEventDisableTiming);
    return error;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }

cudaError_t cudaEventDestroy(cudaEvent_t event) {
    if (!event) return refuse("cudaEventDestroy", cudaErrorInvalidResourceHandle, "no such event");
    free(event);
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
    if (!event) return refuse("cudaEventRecord", cudaErrorInvalidResourceHandle, "no such event");
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    event->nanoseconds = static_cast<int64_t>(now.tv_sec) * 1000000000 + now.tv_nsec;
    event->recorded = true;
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t) {
    show_output();
    return pending_error();
}

cudaError_t cudaEventQuery(cudaEvent_t) { return pending_error(); }

// The time that the simulation took: it says nothing about a GPU.
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
    if (!start || !end || !start->recorded || !end->recorded || !start->timing || !end->timing) {
        return refuse("cudaEventElapsedTime", cudaErrorInvalidResourceHandle,
                      "both events must have been recorded, and created with timing");
    }
    *milliseconds = static_cast<float>(static_cast<double>(end->nanoseconds - start->nanoseconds) * 1e-6);
    return cudaSuccess;
}

}  // extern "C"
