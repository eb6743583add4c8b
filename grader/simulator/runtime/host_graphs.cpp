// CUDA graphs: streams are captured, and what they were asked to do is launched again and again. Graphs that are put
// together node by node, and changes of a graph, are not simulated (grader/source/constructs.py).
#include "captures.h"
#include "events.h"
#include "own_memory.h"
#include "refuse.h"
#include "streams.h"

using namespace sim;

struct CUgraph_st {
    NodeList nodes;
    CUgraph_st* next;
};

struct CUgraphExec_st {
    NodeList nodes;
    CUgraphExec_st* next;
    unsigned generation;
    uint32_t* lanes;  // of each slot but the first, which takes the lane of the stream that the graph is launched in
    uint32_t* counts;
    Clock done;  // what was launched before: a graph does not run beside itself
};

namespace {

CUgraph_st* graphs = nullptr;
CUgraphExec_st* executables = nullptr;

template <typename T>
T** link_to(T** first, const T* wanted) {
    T** link = first;
    while (*link && *link != wanted) link = &(*link)->next;
    return *link ? link : nullptr;
}

constexpr const char* no_graph = "no such graph: it was never captured, or has been destroyed";
constexpr const char* no_executable = "no such executable graph: it was never instantiated, or has been destroyed";

cudaError_t instantiate(const char* call, cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags) {
    if (!executable) return refuse(call, cudaErrorInvalidValue, "no place to put the executable graph");
    own::result(executable);
    DeviceLock lock;
    if (!link_to(&graphs, graph)) return refuse(call, cudaErrorInvalidValue, no_graph);
    constexpr unsigned long long harmless =
        cudaGraphInstantiateFlagAutoFreeOnLaunch | cudaGraphInstantiateFlagUseNodePriority;
    if (flags & ~harmless) return refuse(call, cudaErrorNotSupported, "the simulator lacks this flag");
    auto* made = new CUgraphExec_st();
    made->nodes.copy(graph->nodes);
    made->lanes = new uint32_t[graph->nodes.slots]();
    made->counts = new uint32_t[graph->nodes.slots]();
    made->next = executables;
    executables = made;
    *executable = made;
    events::graph_instantiated();
    return cudaSuccess;
}

// The node's clock in terms of lanes. `begin`: what the graph's launch comes after; `before`: how many operations each
// slot's lane had then.
Clock known_to(const Node& node, const uint32_t* lanes, const uint32_t* before, uint32_t slots, const Clock& begin) {
    Clock known = begin;
    for (uint32_t slot = 0; slot < slots; ++slot)
        if (uint32_t number = node.known.at(slot)) known.raise(lanes[slot], before[slot] + number);
    return known;
}

cudaError_t launch(CUgraphExec_st& graph, CUstream_st& stream) {
    uint32_t slots = graph.nodes.slots;
    if (graph.generation != streams::generation()) {
        graph.generation = streams::generation();
        graph.done.clear();
        for (uint32_t slot = 1; slot < slots; ++slot) {
            graph.lanes[slot] = streams::new_lane();
            graph.counts[slot] = 0;
        }
    }
    events::submitted();
    streams::advance(stream);
    stream.known.join(graph.done);
    graph.lanes[0] = stream.lane;
    graph.counts[0] = stream.count;
    Clock begin = stream.known, end = begin;
    auto* before = new uint32_t[slots];
    for (uint32_t slot = 0; slot < slots; ++slot) before[slot] = graph.counts[slot];
    cudaError_t error = cudaSuccess;
    for (Node* node = graph.nodes.first; node && !error; node = node->next) {
        Clock known = known_to(*node, graph.lanes, before, slots, begin);
        uint32_t lane = graph.lanes[node->slot], number = ++graph.counts[node->slot];
        error = streams::perform_in_order(node->operation, node->stream, lane, number, known);
        end.join(known);
        end.raise(lane, number);
    }
    stream.count = graph.counts[0];
    stream.known = graph.done = end;
    delete[] before;
    return error;
}

}  // namespace

extern "C" {

cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode) {
    DeviceLock lock;
    CUstream_st* stream = streams::find(handle);
    if (!stream) return refuse("cudaStreamBeginCapture", cudaErrorInvalidResourceHandle, streams::no_stream);
    return captures::begin(*stream, mode);
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
    *own::result(graph) = nullptr;
    DeviceLock lock;
    CUstream_st* stream = streams::find(handle);
    if (!stream) return refuse("cudaStreamEndCapture", cudaErrorInvalidResourceHandle, streams::no_stream);
    NodeList nodes;
    cudaError_t error = captures::finish(*stream, &nodes);
    if (error) return error;
    auto* made = new CUgraph_st();
    made->nodes = nodes;
    made->next = graphs;
    graphs = made;
    *graph = made;
    return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
    own::result(status);
    DeviceLock lock;
    const char* call = "cudaStreamIsCapturing";
    CUstream_st* stream = streams::find(handle);
    if (!stream) return refuse(call, cudaErrorInvalidResourceHandle, streams::no_stream);
    if (streams::is_legacy(*stream)) {
        if (cudaError_t error = captures::forbids_legacy_status(call)) return error;
    }
    *status = !stream->capture           ? cudaStreamCaptureStatusNone
              : stream->capture->invalid ? cudaStreamCaptureStatusInvalidated
                                         : cudaStreamCaptureStatusActive;
    return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
    own::result(count);
    DeviceLock lock;
    const char* call = "cudaGraphGetNodes";
    if (!link_to(&graphs, graph)) return refuse(call, cudaErrorInvalidValue, no_graph);
    if (nodes) return refuse(call, cudaErrorNotSupported, "the simulator only counts nodes: pass a null pointer");
    *count = graph->nodes.count;
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags) {
    return instantiate("cudaGraphInstantiate", executable, graph, flags);
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags) {
    return instantiate("cudaGraphInstantiateWithFlags", executable, graph, flags);
}

cudaError_t cudaGraphUpload(cudaGraphExec_t graph, cudaStream_t handle) {
    DeviceLock lock;
    const char* call = "cudaGraphUpload";
    if (!link_to(&executables, graph)) return refuse(call, cudaErrorInvalidValue, no_executable);
    if (!streams::find(handle)) return refuse(call, cudaErrorInvalidResourceHandle, streams::no_stream);
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t handle) {
    DeviceLock lock;
    const char* call = "cudaGraphLaunch";
    if (current_fault()) return static_cast<cudaError_t>(current_fault());
    if (!link_to(&executables, graph)) return refuse(call, cudaErrorInvalidValue, no_executable);
    CUstream_st* stream = streams::find(handle);
    if (!stream) return refuse(call, cudaErrorInvalidResourceHandle, streams::no_stream);
    if (stream->capture) {
        stream->capture->invalid = true;
        return refuse(call, cudaErrorNotSupported,
                      "the simulator has no graphs within graphs: launch it after the capture");
    }
    if (streams::is_legacy(*stream)) {
        if (cudaError_t error = captures::forbids_legacy(call)) return error;
    }
    return launch(*graph, *stream);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) {
    DeviceLock lock;
    CUgraphExec_st** link = link_to(&executables, graph);
    if (!link) return refuse("cudaGraphExecDestroy", cudaErrorInvalidValue, no_executable);
    *link = graph->next;
    graph->nodes.clear();
    delete[] graph->lanes;
    delete[] graph->counts;
    delete graph;
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
    DeviceLock lock;
    CUgraph_st** link = link_to(&graphs, graph);
    if (!link) return refuse("cudaGraphDestroy", cudaErrorInvalidValue, no_graph);
    *link = graph->next;
    graph->nodes.clear();
    delete graph;
    return cudaSuccess;
}

}  // extern "C"
