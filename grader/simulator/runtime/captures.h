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
    uint32_t slots = 0;  // one for each stream
    Clock all;           // how many nodes each slot has
    Capture* next = nullptr;
};

namespace captures {

cudaError_t begin(CUstream_st& stream, cudaStreamCaptureMode mode);
// Hands over the graph; an error if the capture is spoiled, or has work that was not joined.
cudaError_t finish(CUstream_st& stream, CUgraph_st** graph);
// Adds the operation as a node; the stream is being captured.
cudaError_t add(const Operation& operation, CUstream_st& stream);
// A call that CUDA does not allow now; each returns cudaSuccess when there is no such capture, else refuses the call and
// spoils the capture.
cudaError_t forbids_unsafe(const char* call);                         // cudaMalloc, ...: unless the mode is relaxed
cudaError_t forbids_device(const char* call);                         // waits for the whole device
cudaError_t forbids_stream(const char* call, CUstream_st& stream);    // waits for the stream, or asks it
cudaError_t forbids_event(const char* call, CUevent_st& event);       // waits for the event, or asks it
cudaError_t forbids_legacy(const char* call);                         // uses the legacy default stream
cudaError_t forbids_legacy_status(const char* call);                  // asks whether that is captured: spoils nothing
cudaError_t forbids_external(const char* call, CUstream_st& stream);  // an event as a node of its own
cudaError_t wait(CUstream_st& stream, CUevent_st& event);
void forget(CUstream_st& stream);  // it is destroyed
void reset();
// Whether a capture with that number is under way.
Capture* find(uint64_t number);

}  // namespace captures

}  // namespace sim
