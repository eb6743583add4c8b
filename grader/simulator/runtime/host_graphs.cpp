// CUDA graphs: stream capture, instantiation and launches. Graphs built node by node are in host_graph_nodes.cpp.
#include "captures.h"
#include "events.h"
#include "executables.h"
#include "graphs.h"
#include "submission_sandbox/sandbox.h"
#include "refuse.h"
#include "streams.h"

using namespace sim;

struct CUgraphExec_st {
    CUgraph_st* graph;  // copy of the graph at instantiation
    Schedule schedule;
    CUgraphExec_st* next;
    unsigned generation;
    // The lane of each slot (clock.h). A lane is an entry of a vector clock. The first slot uses the lane of the
    // stream of the launch.
    uint32_t* lanes;
    uint32_t* counts;
    Clock done;  // operations of earlier launches, because launches of one executable do not overlap
};

namespace {

using executables::no_executable;
using executables::no_graph;

CUgraphExec_st* first_executable = nullptr;

cudaError_t instantiate(const char* call, cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags) {
    if (!executable) return refuse(call, cudaErrorInvalidValue, "the pointer to the executable graph is null");
    sandbox::result(executable);
    DeviceLock lock;
    if (!graphs::find(graph)) return refuse(call, cudaErrorInvalidValue, no_graph);
    constexpr unsigned long long harmless =
        cudaGraphInstantiateFlagAutoFreeOnLaunch | cudaGraphInstantiateFlagUseNodePriority;
    if (flags & ~harmless) return refuse(call, cudaErrorNotSupported, "the simulator does not support this flag");
    auto* made = new CUgraphExec_st();
    made->graph = graphs::clone(*graph);
    if (!graphs::make_schedule(*made->graph, &made->schedule)) {
        graphs::destroy(made->graph);
        delete made;
        return refuse(call, cudaErrorInvalidValue, "the dependencies have a cycle");
    }
    made->lanes = new uint32_t[made->schedule.slots]();
    made->counts = new uint32_t[made->schedule.slots]();
    made->next = first_executable;
    first_executable = made;
    *executable = made;
    events::graph_instantiated();
    return cudaSuccess;
}

// Returns the vector clock of a step for one launch of the graph. The step's own clock has an entry for each slot of
// the graph; the result has entries for the lanes of the launch. `begin` is the clock of the graph's launch; `before`
// has the number of operations in each slot's lane at that time.
Clock known_to(const Step& step, const uint32_t* lanes, const uint32_t* before, uint32_t slots, const Clock& begin) {
    Clock known = begin;
    for (uint32_t slot = 0; slot < slots; ++slot)
        if (uint32_t number = step.known.at(slot)) known.raise(lanes[slot], before[slot] + number);
    return known;
}

cudaError_t launch(CUgraphExec_st& graph, CUstream_st& stream) {
    uint32_t slots = graph.schedule.slots;
    if (graph.generation != streams::generation()) {
        graph.generation = streams::generation();
        graph.done.clear();
        for (uint32_t slot = 1; slot < slots; ++slot) {
            graph.lanes[slot] = streams::new_lane();
            graph.counts[slot] = 0;
        }
    }
    if (slots > 1) streams::now_several();
    events::submitted();
    streams::advance(stream);
    stream.known.join(graph.done);
    graph.lanes[0] = stream.lane;
    graph.counts[0] = stream.count;
    Clock begin = stream.known, end = begin;
    auto* before = new uint32_t[slots];
    for (uint32_t slot = 0; slot < slots; ++slot) before[slot] = graph.counts[slot];
    cudaError_t error = cudaSuccess;
    for (size_t i = 0; i < graph.schedule.count && !error; ++i) {
        const Step& step = graph.schedule.steps[i];
        Clock known = known_to(step, graph.lanes, before, slots, begin);
        uint32_t lane = graph.lanes[step.slot], number = ++graph.counts[step.slot];
        for (const Operation& operation : step.node->work)
            if (!error) error = streams::perform_in_order(operation, step.node->stream, lane, number, known);
        end.join(known);
        end.raise(lane, number);
    }
    stream.count = graph.counts[0];
    stream.known = graph.done = end;
    delete[] before;
    return error;
}

}  // namespace

namespace sim::executables {

bool find(cudaGraphExec_t handle) {
    const CUgraphExec_st* executable = first_executable;
    while (executable && executable != handle) executable = executable->next;
    return executable;
}

CUgraphNode_st* copy_of(cudaGraphExec_t executable, const CUgraphNode_st& node) {
    for (size_t i = 0; i < executable->schedule.count; ++i)
        if (executable->schedule.steps[i].node->original == node.number) return executable->schedule.steps[i].node;
    return nullptr;
}

}  // namespace sim::executables

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
    DeviceLock lock;
    CUstream_st* stream = streams::find(handle);
    if (!stream) return refuse("cudaStreamBeginCapture", cudaErrorInvalidResourceHandle, streams::no_stream);
    return captures::begin(*stream, mode);
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
    *sandbox::result(graph) = nullptr;
    DeviceLock lock;
    CUstream_st* stream = streams::find(handle);
    if (!stream) return refuse("cudaStreamEndCapture", cudaErrorInvalidResourceHandle, streams::no_stream);
    CUgraph_st* captured;
    cudaError_t error = captures::finish(*stream, &captured);
    if (!error) graphs::publish(*graph = captured);
    return error;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
    sandbox::result(status);
    DeviceLock lock;
    const char* call = "cudaStreamIsCapturing";
    CUstream_st* stream = streams::find(handle);
    if (!stream) return refuse(call, cudaErrorInvalidResourceHandle, streams::no_stream);
    if (cudaError_t error = captures::forbids_legacy_status(call, *stream)) return error;
    *status = !stream->capture           ? cudaStreamCaptureStatusNone
              : stream->capture->invalid ? cudaStreamCaptureStatusInvalidated
                                         : cudaStreamCaptureStatusActive;
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags) {
    return instantiate("cudaGraphInstantiate", executable, graph, flags);
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags) {
    return instantiate("cudaGraphInstantiateWithFlags", executable, graph, flags);
}

cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t* executable, cudaGraph_t graph,
                                           cudaGraphInstantiateParams* params) {
    const char* call = "cudaGraphInstantiateWithParams";
    if (!params) return refuse(call, cudaErrorInvalidValue, "no parameters");
    sandbox::result(params);
    unsigned long long flags = params->flags & ~static_cast<unsigned long long>(cudaGraphInstantiateFlagUpload);
    cudaError_t error = instantiate(call, executable, graph, flags);
    params->result_out = error ? cudaGraphInstantiateError : cudaGraphInstantiateSuccess;
    params->errNode_out = nullptr;
    return error;
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph, cudaGraphExecUpdateResultInfo* info) {
    if (info) sandbox::result(info);
    DeviceLock lock;
    const char* call = "cudaGraphExecUpdate";
    if (!executables::find(executable)) return refuse(call, cudaErrorInvalidValue, no_executable);
    if (!graphs::find(graph)) return refuse(call, cudaErrorInvalidValue, no_graph);
    cudaGraphExecUpdateResultInfo said = {cudaGraphExecUpdateSuccess, nullptr, nullptr};
    bool type_differs;
    if (graphs::same_shape(*executable->graph, *graph, &said.errorNode, &type_differs)) {
        graphs::take_work(*executable->graph, *graph);
    } else {
        said.result = type_differs ? cudaGraphExecUpdateErrorNodeTypeChanged : cudaGraphExecUpdateErrorTopologyChanged;
    }
    if (info) *info = said;
    // A program calls this to find out whether an update is possible, so a failure is not reported as an error.
    return said.result == cudaGraphExecUpdateSuccess ? cudaSuccess : cudaErrorGraphExecUpdateFailure;
}

cudaError_t cudaGraphUpload(cudaGraphExec_t graph, cudaStream_t handle) {
    DeviceLock lock;
    const char* call = "cudaGraphUpload";
    if (!executables::find(graph)) return refuse(call, cudaErrorInvalidValue, no_executable);
    if (!streams::find(handle)) return refuse(call, cudaErrorInvalidResourceHandle, streams::no_stream);
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t handle) {
    DeviceLock lock;
    const char* call = "cudaGraphLaunch";
    if (current_fault()) return static_cast<cudaError_t>(current_fault());
    if (!executables::find(graph)) return refuse(call, cudaErrorInvalidValue, no_executable);
    CUstream_st* stream = streams::find(handle);
    if (!stream) return refuse(call, cudaErrorInvalidResourceHandle, streams::no_stream);
    if (stream->capture) {
        stream->capture->invalid = true;
        return refuse(
            call, cudaErrorNotSupported,
            "the simulator does not support graph launches during a capture: launch the graph after the capture");
    }
    if (cudaError_t error = captures::forbids_legacy(call, *stream)) return error;
    return launch(*graph, *stream);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
    DeviceLock lock;
    if (!take_out(first_executable, graph)) return refuse("cudaGraphExecDestroy", cudaErrorInvalidValue, no_executable);
    graphs::destroy(graph->graph);
    delete[] graph->lanes;
    delete[] graph->counts;
    delete graph;
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t handle) {
    DeviceLock lock;
    const char* call = "cudaGraphDestroy";
    CUgraph_st* graph = graphs::find(handle);
    if (!graph) return refuse(call, cudaErrorInvalidValue, no_graph);
    if (graph->embedded)
        return refuse(call, cudaErrorInvalidValue, "the graph is a child node of another graph, which owns it");
    graphs::withdraw(graph);
    graphs::destroy(graph);
    return cudaSuccess;
}

}  // extern "C"
