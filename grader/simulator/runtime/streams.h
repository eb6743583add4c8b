// Streams and events, and the order that they give to operations.
//
// Operations run when they are submitted: program order is one of the orders that streams, events and synchronization
// allow. This hides a missing dependency, which the checks detect: each operation carries a clock of what it is ordered
// after, and the host has a clock as well.
#pragma once

#include "clock.h"
#include "cuda_runtime_api.h"
#include "operation.h"

namespace sim {
struct Capture;
}

struct CUstream_st {
    CUstream_st* next = nullptr;  // next stream that exists
    unsigned number = 0;          // number in findings; 0 is the default stream
    int priority = 0;
    bool blocking = true;     // synchronizes with the legacy default stream: not created with cudaStreamNonBlocking
    unsigned generation = 0;  // streams::generation() when `lane` was assigned; `lane` is invalid if it differs
    uint32_t lane = 0;
    uint32_t count = 0;  // number of operations so far
    uint32_t asked = 0;  // value of `count` when a query last returned cudaErrorNotReady
    sim::Clock known;    // operations that the stream's next one is ordered after
    sim::Capture* capture = nullptr;
    uint32_t slot = 0;    // lane of the stream in the capture
    sim::Clock captured;  // nodes that the stream's next node is ordered after
};

struct CUevent_st {
    CUevent_st* next = nullptr;
    bool recorded = false;
    bool timing = true;
    bool asked = false;  // cudaEventQuery returned cudaErrorNotReady since the last cudaEventRecord
    int64_t nanoseconds = 0;
    unsigned generation = 0;
    sim::Clock known;
    uint64_t capture = 0;  // number of the capture in which it was recorded; 0: none
    sim::Clock captured;
};

namespace sim::streams {

constexpr const char* no_stream = "invalid stream: it was never created, or was destroyed";
constexpr const char* no_event = "invalid event: it was never created, or was destroyed";

// Returns the stream behind a handle, or null if it was never created or was destroyed.
CUstream_st* find(cudaStream_t handle);
CUevent_st* find(cudaEvent_t handle);

// Performs the operation in its stream, or adds it to the graph into which the stream is captured.
cudaError_t submit(const Operation& operation, cudaStream_t handle);

// Returns the number of a new lane, that is, of a new entry in vector clocks. The numbers start anew after sim_reset.
uint32_t new_lane();
// Called when the program first uses a second stream: from now on the order of submission does not order all
// operations.
void now_several();
unsigned generation();
CUstream_st* create_stream(bool blocking, int priority);
void destroy_stream(CUstream_st& stream);
CUevent_st* create_event(bool timing);
void destroy_event(CUevent_st& event);
bool is_legacy(const CUstream_st& stream);
// Refuses a call made by a host function that runs in a stream; else returns cudaSuccess.
cudaError_t forbids_host_function(const char* call);
// Adds to the stream's `known` the operations that its next operation is ordered after.
void advance(CUstream_st& stream);
// Reports the operation to the checks and performs it. `known` has the operations that it is ordered after. A host
// function adds those that it learned from other threads to be complete.
cudaError_t perform_in_order(const Operation& operation, unsigned stream, uint32_t lane, uint32_t number, Clock& known);

// The operations that the host knows to be complete.
const Clock& host_clock();
void host_waited_for(const Clock& clock);
void host_waited_for_all();
void each(void (*visit)(CUstream_st&, void*), void* context);

// Checks the read of an output by the launcher's caller, in the stream that it passed to the launcher.
void caller_reads(const void* data, size_t bytes);
void reset();

}  // namespace sim::streams
