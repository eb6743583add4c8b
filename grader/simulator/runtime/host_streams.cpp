// Streams and events. Every call has finished when it returns, so all streams are in order, and an event is a time. What
// a kernel does in one stream without waiting for another one is therefore not found; that it waits for something is.
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "cuda_runtime_api.h"
#include "output.h"
#include "refuse.h"

struct CUstream_st {
    CUstream_st* next;  // of those that live
    int priority;
};

struct CUevent_st {
    CUevent_st* next;
    bool recorded;
    bool timing;
    int64_t nanoseconds;
};

using namespace sim;

namespace {

// Those that were created and not destroyed.
template <typename T>
class Living {
  public:
    cudaError_t create(const char* call, T** result) {
        *result = static_cast<T*>(calloc(1, sizeof(T)));
        if (!*result) return refuse(call, cudaErrorMemoryAllocation, "no memory");
        pthread_mutex_lock(&lock_);
        (*result)->next = first_;
        first_ = *result;
        pthread_mutex_unlock(&lock_);
        return cudaSuccess;
    }
    bool has(const T* handle) {
        pthread_mutex_lock(&lock_);
        const T* one = first_;
        while (one && one != handle) one = one->next;
        pthread_mutex_unlock(&lock_);
        return one != nullptr;
    }
    // False when there is no such one.
    bool destroy(T* handle) {
        pthread_mutex_lock(&lock_);
        T** link = &first_;
        while (*link && *link != handle) link = &(*link)->next;
        bool found = *link != nullptr;
        if (found) *link = handle->next;
        pthread_mutex_unlock(&lock_);
        if (found) free(handle);
        return found;
    }

  private:
    T* first_ = nullptr;
    pthread_mutex_t lock_ = PTHREAD_MUTEX_INITIALIZER;
};

Living<CUstream_st> streams;
Living<CUevent_st> all_events;

bool is_default(cudaStream_t stream) { return !stream || stream == cudaStreamLegacy || stream == cudaStreamPerThread; }

constexpr const char* no_stream = "no such stream: it was never created, or has been destroyed";
constexpr const char* no_event = "no such event: it was never created, or has been destroyed";

cudaError_t pending_error() { return static_cast<cudaError_t>(peek_last_error()); }

}  // namespace

extern "C" {

cudaError_t cudaStreamCreate(cudaStream_t* stream) { return streams.create("cudaStreamCreate", stream); }

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int) {
    return streams.create("cudaStreamCreateWithFlags", stream);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int, int priority) {
    cudaError_t error = streams.create("cudaStreamCreateWithPriority", stream);
    if (!error) (*stream)->priority = priority;
    return error;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    if (is_default(stream)) {
        return refuse("cudaStreamDestroy", cudaErrorInvalidResourceHandle, "the default stream cannot be destroyed");
    }
    if (!streams.destroy(stream)) return refuse("cudaStreamDestroy", cudaErrorInvalidResourceHandle, no_stream);
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t) {
    show_output();
    return pending_error();
}

cudaError_t cudaStreamQuery(cudaStream_t) { return pending_error(); }

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags) {
    const char* call = "cudaStreamWaitEvent";
    if (flags > 1) return refuse(call, cudaErrorInvalidValue, "the flags are cudaEventWaitDefault or -External");
    if (!is_default(stream) && !streams.has(stream)) return refuse(call, cudaErrorInvalidResourceHandle, no_stream);
    if (!all_events.has(event)) return refuse(call, cudaErrorInvalidResourceHandle, no_event);
    // CUDA takes this for a wait that is over.
    if (!event->recorded) events::waits_for_nothing(call, __builtin_return_address(0));
    return cudaSuccess;
}

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
    cudaError_t error = all_events.create("cudaEventCreate", event);
    if (!error) (*event)->timing = !(flags & cudaEventDisableTiming);
    return error;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }

cudaError_t cudaEventDestroy(cudaEvent_t event) {
    if (!all_events.destroy(event)) return refuse("cudaEventDestroy", cudaErrorInvalidResourceHandle, no_event);
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    const char* call = "cudaEventRecord";
    if (!is_default(stream) && !streams.has(stream)) return refuse(call, cudaErrorInvalidResourceHandle, no_stream);
    if (!all_events.has(event)) return refuse(call, cudaErrorInvalidResourceHandle, no_event);
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
