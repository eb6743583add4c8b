// Streams and events, and the order that they give to operations.
//
// Operations run when they are submitted: the order of the calls is one that every stream, event and synchronization
// allows. What it hides, an order that only the calls have, the checks find: each operation comes with a clock that says
// what it is ordered after, and the host has one, too.
#pragma once

#include "clock.h"
#include "cuda_runtime_api.h"
#include "operation.h"

namespace sim {
struct Capture;
}

struct CUstream_st {
    CUstream_st* next = nullptr;  // of those that live
    unsigned number = 0;          // as findings name it; 0 is the default stream
    int priority = 0;
    bool blocking = true;     // ordered with the legacy default stream: not made with cudaStreamNonBlocking
    unsigned generation = 0;  // of the lane: since the last sim_reset, or none
    uint32_t lane = 0;
    uint32_t count = 0;  // operations so far
    uint32_t asked = 0;  // operations when a query last said cudaErrorNotReady
    sim::Clock known;    // what its next operation comes after
    sim::Capture* capture = nullptr;
    uint32_t slot = 0;    // in the capture: the stream's lane there
    sim::Clock captured;  // in the capture: what the next node comes after
};

struct CUevent_st {
    CUevent_st* next = nullptr;
    bool recorded = false;
    bool timing = true;
    bool asked = false;  // a query has said cudaErrorNotReady since
    int64_t nanoseconds = 0;
    unsigned generation = 0;
    sim::Clock known;
    uint64_t capture = 0;  // number of the capture in which it was recorded; 0: none
    sim::Clock captured;
};

namespace sim::streams {

constexpr const char* no_stream = "no such stream: it was never created, or has been destroyed";
constexpr const char* no_event = "no such event: it was never created, or has been destroyed";

// The stream behind a handle, or null: one that was never created, or was destroyed.
CUstream_st* find(cudaStream_t handle);
CUevent_st* find(cudaEvent_t handle);

// Performs the operation in its stream, or adds it to the graph that the stream is captured into.
cudaError_t submit(const Operation& operation, cudaStream_t handle);

// A lane of its own, since the last sim_reset.
uint32_t new_lane();
// From now on there is work that its submission does not order.
void now_several();
unsigned generation();
CUstream_st* create_stream(bool blocking, int priority);
void destroy_stream(CUstream_st& stream);
CUevent_st* create_event(bool timing);
void destroy_event(CUevent_st& event);
bool is_legacy(const CUstream_st& stream);
// Refuses the call when a function of the host that a stream runs makes it; else cudaSuccess.
cudaError_t forbids_host_function(const char* call);
// Brings into `known` what the stream's next operation comes after.
void advance(CUstream_st& stream);
// Tells the checks of the operation and performs it. `known`: what it comes after, and then also what a function of the host has
// heard from other threads.
cudaError_t perform_in_order(const Operation& operation, unsigned stream, uint32_t lane, uint32_t number, Clock& known);

// What the host knows to be over.
const Clock& host_clock();
void host_waited_for(const Clock& clock);
void host_waited_for_all();
void each(void (*visit)(CUstream_st&, void*), void* context);

// Who called the launcher reads an output, in the stream that it gave to the launcher.
void caller_reads(const void* data, size_t bytes);
void reset();

}  // namespace sim::streams
