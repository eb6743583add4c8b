// The API of streams and events. streams.h describes the order that they give.
#include <time.h>

#include "captures.h"
#include "cuda_runtime_api.h"
#include "output.h"
#include "submission_sandbox/sandbox.h"
#include "refuse.h"
#include "streams.h"

using namespace sim;

namespace {

cudaError_t pending_error() { return static_cast<cudaError_t>(peek_last_error()); }

// `function` is the submission's, which the caller has checked, or a function of this file that calls it.
cudaError_t submit_function(const char* call, cudaStream_t stream, cudaHostFn_t function, void* data,
                            const void* caller) {
    Operation operation = {OperationKind::host_function, call, caller};
    operation.function = function;
    operation.data = data;
    return streams::submit(operation, stream);
}

struct Callback {
    cudaStream_t stream;
    cudaStreamCallback_t function;
    void* data;
};

}  // namespace

extern "C" {

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
    *sandbox::result(stream) = streams::create_stream(true, 0);
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags) {
    return cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int flags, int priority) {
    if (flags & ~static_cast<unsigned>(cudaStreamNonBlocking)) {
        return refuse("cudaStreamCreate", cudaErrorInvalidValue,
                      "the flags must be cudaStreamDefault or cudaStreamNonBlocking");
    }
    *sandbox::result(stream) = streams::create_stream(!(flags & cudaStreamNonBlocking), priority);
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
    DeviceLock lock;
    const char* call = "cudaStreamDestroy";
    if (!handle || handle == cudaStreamLegacy || handle == cudaStreamPerThread) {
        return refuse(call, cudaErrorInvalidResourceHandle, "the default stream cannot be destroyed");
    }
    CUstream_st* stream = streams::find(handle);
    if (!stream) return refuse(call, cudaErrorInvalidResourceHandle, streams::no_stream);
    streams::destroy_stream(*stream);
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
    DeviceLock lock;
    const char* call = "cudaStreamSynchronize";
    CUstream_st* stream = streams::find(handle);
    if (!stream) return refuse(call, cudaErrorInvalidResourceHandle, streams::no_stream);
    if (cudaError_t error = streams::forbids_host_function(call)) return error;
    if (cudaError_t error = captures::forbids_stream(call, *stream)) return error;
    streams::advance(*stream);
    streams::host_waited_for(stream->known);
    show_output();
    return pending_error();
}

// For work that the host has not waited for, the first query returns cudaErrorNotReady and the next one cudaSuccess.
cudaError_t cudaStreamQuery(cudaStream_t handle) {
    DeviceLock lock;
    const char* call = "cudaStreamQuery";
    CUstream_st* stream = streams::find(handle);
    if (!stream) return refuse(call, cudaErrorInvalidResourceHandle, streams::no_stream);
    if (cudaError_t error = captures::forbids_stream(call, *stream)) return error;
    streams::advance(*stream);
    if (!streams::host_clock().covers(stream->known) && stream->asked != stream->count) {
        stream->asked = stream->count;
        return cudaErrorNotReady;
    }
    streams::host_waited_for(stream->known);
    return pending_error();
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event_handle, unsigned int flags) {
    DeviceLock lock;
    const char* call = "cudaStreamWaitEvent";
    if (flags > 1)
        return refuse(call, cudaErrorInvalidValue, "the flags must be cudaEventWaitDefault or cudaEventWaitExternal");
    CUstream_st* stream = streams::find(handle);
    if (!stream) return refuse(call, cudaErrorInvalidResourceHandle, streams::no_stream);
    CUevent_st* event = streams::find(event_handle);
    if (!event) return refuse(call, cudaErrorInvalidResourceHandle, streams::no_event);
    if (!event->recorded) {  // CUDA returns cudaSuccess without waiting
        events::waits_for_unrecorded_event(call, __builtin_return_address(0));
        return cudaSuccess;
    }
    if (stream->capture && flags) return captures::forbids_external(call, *stream);
    if (stream->capture || event->capture) return captures::wait(*stream, *event);
    stream->known.join(event->known);
    return cudaSuccess;
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* data, unsigned int) {
    const void* caller = __builtin_return_address(0);
    const char* call = "cudaStreamAddCallback";
    if (!callback) return refuse(call, cudaErrorInvalidValue, "no function");
    sandbox::check_function(reinterpret_cast<const void*>(callback), caller);
    DeviceLock lock;
    if (CUstream_st* known = streams::find(stream); known && known->capture) {
        known->capture->invalid = true;
        return refuse(call, cudaErrorStreamCaptureUnsupported, "not allowed during a capture: use cudaLaunchHostFunc");
    }
    Callback what = {stream, callback, data};
    auto run = [](void* context) {
        auto* wanted = static_cast<Callback*>(context);
        wanted->function(wanted->stream, pending_error(), wanted->data);
    };
    return submit_function(call, stream, run, &what, caller);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
    const void* caller = __builtin_return_address(0);
    const char* call = "cudaLaunchHostFunc";
    if (!function) return refuse(call, cudaErrorInvalidValue, "no function");
    sandbox::check_function(reinterpret_cast<const void*>(function), caller);
    return submit_function(call, stream, function, data, caller);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
    *sandbox::result(least) = 0;
    *sandbox::result(greatest) = -5;
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) {
    *sandbox::result(event) = streams::create_event(!(flags & cudaEventDisableTiming));
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
    DeviceLock lock;
    CUevent_st* event = streams::find(handle);
    if (!event) return refuse("cudaEventDestroy", cudaErrorInvalidResourceHandle, streams::no_event);
    streams::destroy_event(*event);
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
    return cudaEventRecordWithFlags(event, stream, cudaEventRecordDefault);
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event_handle, cudaStream_t handle, unsigned int flags) {
    DeviceLock lock;
    const char* call = "cudaEventRecord";
    if (flags > 1)
        return refuse(call, cudaErrorInvalidValue,
                      "the flags must be cudaEventRecordDefault or cudaEventRecordExternal");
    CUstream_st* stream = streams::find(handle);
    if (!stream) return refuse(call, cudaErrorInvalidResourceHandle, streams::no_stream);
    CUevent_st* event = streams::find(event_handle);
    if (!event) return refuse(call, cudaErrorInvalidResourceHandle, streams::no_event);
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    event->nanoseconds = static_cast<int64_t>(now.tv_sec) * 1000000000 + now.tv_nsec;
    if (stream->capture) {
        if (stream->capture->invalid) {
            return refuse(call, cudaErrorStreamCaptureInvalidated,
                          "the capture is invalid because of an error during it");
        }
        if (flags) return captures::forbids_external(call, *stream);
        event->capture = stream->capture->number;
        event->captured = stream->captured;
    } else {
        if (cudaError_t error = captures::forbids_legacy(call, *stream)) return error;
        streams::advance(*stream);
        event->capture = 0;
        event->known = stream->known;
    }
    event->asked = false;
    event->recorded = true;
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle) {
    DeviceLock lock;
    const char* call = "cudaEventSynchronize";
    CUevent_st* event = streams::find(handle);
    if (!event) return refuse(call, cudaErrorInvalidResourceHandle, streams::no_event);
    if (cudaError_t error = streams::forbids_host_function(call)) return error;
    if (cudaError_t error = captures::forbids_event(call, *event)) return error;
    streams::host_waited_for(event->known);
    show_output();
    return pending_error();
}

// As with cudaStreamQuery, the first query after new work returns cudaErrorNotReady.
cudaError_t cudaEventQuery(cudaEvent_t handle) {
    DeviceLock lock;
    const char* call = "cudaEventQuery";
    CUevent_st* event = streams::find(handle);
    if (!event) return refuse(call, cudaErrorInvalidResourceHandle, streams::no_event);
    if (cudaError_t error = captures::forbids_event(call, *event)) return error;
    if (cudaError_t error = captures::forbids_unsafe(call)) return error;
    if (!streams::host_clock().covers(event->known) && !event->asked) {
        event->asked = true;
        return cudaErrorNotReady;
    }
    streams::host_waited_for(event->known);
    return pending_error();
}

// The simulator's own run time: it says nothing about a GPU.
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start_handle, cudaEvent_t end_handle) {
    sandbox::result(milliseconds);
    DeviceLock lock;
    const char* call = "cudaEventElapsedTime";
    CUevent_st *start = streams::find(start_handle), *end = streams::find(end_handle);
    if (!start || !end || !start->recorded || !end->recorded || !start->timing || !end->timing) {
        return refuse(call, cudaErrorInvalidResourceHandle,
                      "record both events first, and create them without cudaEventDisableTiming");
    }
    if (start->capture || end->capture) {
        return refuse(call, cudaErrorCapturedEvent,
                      "an event was recorded during a capture: record both outside of captures");
    }
    const Clock& host = streams::host_clock();
    if (!host.covers(start->known) || !host.covers(end->known)) {
        // cudaErrorNotReady is not an error that cudaGetLastError returns.
        events::refused(nullptr, call, cudaErrorNotReady,
                        "the events may not be complete: call cudaEventSynchronize(end) first");
        return cudaErrorNotReady;
    }
    *milliseconds = static_cast<float>(static_cast<double>(end->nanoseconds - start->nanoseconds) * 1e-6);
    return cudaSuccess;
}

}  // extern "C"
