// Streams that are being captured into a graph.
#pragma once

#include <pthread.h>

#include "graphs.h"
#include "streams.h"

namespace sim {

struct Capture {
    uint64_t number;
    cudaStreamCaptureMode mode;
    CUstream_st* origin;
    pthread_t thread;
    bool invalid = false;
    CUgraph_st* graph;
    uint32_t slots = 0;  // number of slots; each captured stream has one
    Clock all;           // number of nodes in each slot
    Capture* next = nullptr;
};

namespace captures {

cudaError_t begin(CUstream_st& stream, cudaStreamCaptureMode mode);
// Ends the capture and returns its graph. Reports an error if the capture is invalid, or if a captured stream was not
// joined.
cudaError_t finish(CUstream_st& stream, CUgraph_st** graph);
// Adds the operation as a node to the graph into which the stream is captured.
cudaError_t add(const Operation& operation, CUstream_st& stream);
// Calls that CUDA forbids during a capture. Each function returns cudaSuccess when no capture forbids the call.
// Otherwise it refuses the call and invalidates the capture.
cudaError_t forbids_unsafe(const char* call);  // for cudaMalloc and others; allowed in relaxed mode
cudaError_t forbids_device(const char* call);  // for calls that synchronize the whole device
cudaError_t forbids_stream(const char* call, CUstream_st& stream);  // for calls that synchronize or query the stream
cudaError_t forbids_event(const char* call, CUevent_st& event);     // for calls that synchronize or query the event
// for calls that use the stream, which may be the legacy default stream
cudaError_t forbids_legacy(const char* call, const CUstream_st& stream);
// for a query of the stream's capture status: does not invalidate the capture
cudaError_t forbids_legacy_status(const char* call, const CUstream_st& stream);
cudaError_t forbids_external(
    const char* call,
    CUstream_st& stream);  // for cudaEventRecordExternal and cudaEventWaitExternal, which would add event nodes
cudaError_t wait(CUstream_st& stream, CUevent_st& event);
void forget(CUstream_st& stream);  // called when the stream is destroyed
void reset();
// Returns the active capture with that number, or null.
Capture* find(uint64_t number);

}  // namespace captures

}  // namespace sim
