// Graphs that a program builds node by node, and queries about the nodes of any graph.
#include <string.h>

#include "cuda_runtime_api.h"
#include "executables.h"
#include "graphs.h"
#include "host_memory.h"
#include "submission_sandbox/sandbox.h"
#include "refuse.h"
#include "sim/launch.h"

#define CALLER __builtin_return_address(0)

using namespace sim;

namespace {

constexpr const char* no_node = "invalid node: it was never added, or was destroyed with its graph";
constexpr const char* no_params = "the node's parameters are null";

cudaError_t invalid(const char* call, const char* why, const void* caller) {
    return refuse(call, cudaErrorInvalidValue, why, caller);
}

// -- operations of nodes: each API call collects them as if it submitted them --

// Returns cudaSuccess if the call submitted an operation, else `error`.
cudaError_t collected(const graphs::Collector& collector, cudaError_t error) {
    return collector.collected.begin() != collector.collected.end() ? cudaSuccess : error;
}

cudaError_t collect(const char* call, const cudaKernelNodeParams* params, graphs::Collector& collector,
                    const void* caller) {
    if (!params) return invalid(call, no_params, caller);
    if (params->extra)
        return refuse(call, cudaErrorNotSupported,
                      "the simulator does not support `extra`: pass the arguments as kernelParams", caller);
    LaunchConfig config(params->sim_gridDim, params->sim_blockDim, params->sharedMemBytes);
    config.caller = caller;
    return collected(collector, launch_registered(call, config.of(params->func), params->kernelParams));
}

cudaError_t collect(const char* call, const cudaMemcpy3DParms* params, graphs::Collector&, const void* caller) {
    return copy_box(call, params, nullptr, true, caller);
}

struct Copy {
    void* to;
    const void* from;
    size_t bytes;
    cudaMemcpyKind kind;
};

cudaError_t collect(const char* call, const Copy* copy, graphs::Collector&, const void* caller) {
    Rows rows = {copy->to, copy->bytes, copy->from, copy->bytes, copy->bytes, 1, 0};
    return copy_rows(call, rows, copy->kind, nullptr, true, caller);
}

cudaError_t collect(const char* call, const cudaMemsetParams* params, graphs::Collector&, const void* caller) {
    if (!params) return invalid(call, no_params, caller);
    size_t element = params->elementSize, width = params->width * element;
    if (element != 1 && element != 2 && element != 4)
        return invalid(call, "the element size must be 1, 2 or 4 bytes", caller);
    size_t pitch = params->height > 1 ? params->pitch : width;
    return fill_rows(call, {params->dst, pitch, nullptr, 0, width, params->height, int(params->value), element},
                     nullptr, caller);
}

cudaError_t collect(const char* call, const cudaHostNodeParams* params, graphs::Collector& collector,
                    const void* caller) {
    if (!params || !params->fn) return invalid(call, "no function", caller);
    sandbox::check_function(reinterpret_cast<const void*>(params->fn), caller);
    Operation operation = {OperationKind::host_function, call, caller};
    operation.function = params->fn;
    operation.data = params->userData;
    collector.collected.add(operation);
    return cudaSuccess;
}

// -- nodes --

bool all_in_graph(const CUgraph_st* graph, const cudaGraphNode_t* nodes, size_t count) {
    for (size_t i = 0; i < count; ++i) {
        const CUgraphNode_st* node = graphs::find(nodes[i]);
        if (!node || node->graph != graph) return false;
    }
    return true;
}

// Creates a node without operations.
cudaError_t new_node(const char* call, cudaGraphNode_t* result, cudaGraph_t graph, const cudaGraphNode_t* before,
                     size_t count, cudaGraphNodeType type, const void* caller) {
    if (!result) return invalid(call, "the pointer to the node is null", caller);
    sandbox::result(result);
    if (!graphs::find(graph)) return invalid(call, executables::no_graph, caller);
    if (!all_in_graph(graph, before, count))
        return invalid(call, "a node in the list of dependencies is not in this graph", caller);
    CUgraphNode_st* node = graphs::add(*graph, type);
    for (size_t i = 0; i < count; ++i)
        if (!node->before.has(before[i])) node->before.push(before[i]);
    *result = node;
    return cudaSuccess;
}

template <typename Params>
cudaError_t add_node(const char* call, cudaGraphNode_t* result, cudaGraph_t graph, const cudaGraphNode_t* before,
                     size_t count, cudaGraphNodeType type, const Params* params, const void* caller) {
    DeviceLock lock;
    graphs::Collector collector;
    if (cudaError_t error = collect(call, params, collector, caller)) return error;
    cudaError_t error = new_node(call, result, graph, before, count, type, caller);
    if (!error) (*result)->work.take(collector.collected);
    return error;
}

// Finds the node for a handle, which is a node of a graph or its copy in an executable graph.
template <typename Params>
cudaError_t set_params(const char* call, const cudaGraphExec_t* executable, cudaGraphNode_t handle,
                       cudaGraphNodeType type, const Params* params, const void* caller) {
    DeviceLock lock;
    CUgraphNode_st* node = graphs::find(handle);
    if (!node) return invalid(call, no_node, caller);
    if (node->type != type) return invalid(call, "this call does not fit the type of the node", caller);
    if (executable) {
        if (!executables::find(*executable)) return invalid(call, executables::no_executable, caller);
        node = executables::copy_of(*executable, *node);
        if (!node) return invalid(call, "the executable graph was not instantiated from this node's graph", caller);
    }
    graphs::Collector collector;
    cudaError_t error = collect(call, params, collector, caller);
    if (!error) node->work.take(collector.collected);
    return error;
}

// -- queries --

// Fills the caller's arrays of *count elements. Null arrays only ask for the number of elements.
struct Answer {
    cudaGraphNode_t* nodes;
    cudaGraphNode_t* others;  // for edges: their target nodes
    cudaGraphEdgeData* edges;
    size_t room, found = 0;

    void put(CUgraphNode_st* node, CUgraphNode_st* other = nullptr) {
        if (found < room) {
            if (nodes) *sandbox::result(nodes + found) = node;
            if (others) *sandbox::result(others + found) = other;
            if (edges) *sandbox::result(edges + found) = cudaGraphEdgeData();
        }
        ++found;
    }
    // Unused places become null, as in CUDA.
    void finish(size_t* count) {
        bool filled = nodes || others;
        for (size_t i = found; filled && i < room; ++i) {
            if (nodes) *sandbox::result(nodes + i) = nullptr;
            if (others) *sandbox::result(others + i) = nullptr;
        }
        *sandbox::result(count) = filled && found > room ? room : found;
    }
};

template <typename Visit>
cudaError_t answer_of(const char* call, bool known, const char* why, Answer answer, size_t* count, const void* caller,
                      Visit visit) {
    if (!count) return invalid(call, "the pointer to the number is null", caller);
    if (!known) return invalid(call, why, caller);
    answer.room = *sandbox::result(count);
    visit(answer);
    answer.finish(count);
    return cudaSuccess;
}

bool has_ports(const cudaGraphEdgeData* edges, size_t count) {
    for (size_t i = 0; edges && i < count; ++i)
        if (edges[i].from_port || edges[i].to_port || edges[i].type) return true;
    return false;
}

}  // namespace

extern "C" {

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned int flags) {
    if (!graph || flags)
        return invalid("cudaGraphCreate", "the pointer to the graph must not be null, and flags must be 0", CALLER);
    sandbox::result(graph);
    DeviceLock lock;
    graphs::publish(*graph = graphs::create());
    return cudaSuccess;
}

cudaError_t cudaGraphClone(cudaGraph_t* clone, cudaGraph_t graph) {
    sandbox::result(clone);
    DeviceLock lock;
    if (!graphs::find(graph)) return invalid("cudaGraphClone", executables::no_graph, CALLER);
    graphs::publish(*clone = graphs::clone(*graph));
    return cudaSuccess;
}

cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t* found, cudaGraphNode_t original, cudaGraph_t clone) {
    *sandbox::result(found) = nullptr;
    DeviceLock lock;
    const char* call = "cudaGraphNodeFindInClone";
    if (!graphs::find(clone)) return invalid(call, executables::no_graph, CALLER);
    if (!graphs::find(original)) return invalid(call, no_node, CALLER);
    for (CUgraphNode_st* node = clone->first; node; node = node->next)
        if (node->original == original->number) *found = node;
    return *found ? cudaSuccess
                  : invalid(call, "the graph has no copy of that node: pass a clone of the node's graph", CALLER);
}

// The functions that add a node of a type, and that change its parameters in a graph or in an executable graph.
#define NODE_FUNCTIONS(TYPE, PARAMS)                                                                                  \
    cudaError_t cudaGraphAdd##TYPE##Node(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* before,     \
                                         size_t count, const PARAMS* params) {                                        \
        return add_node("cudaGraphAdd" #TYPE "Node", node, graph, before, count, cudaGraphNodeType##TYPE, params,     \
                        CALLER);                                                                                      \
    }                                                                                                                 \
    cudaError_t cudaGraph##TYPE##NodeSetParams(cudaGraphNode_t node, const PARAMS* params) {                          \
        return set_params("cudaGraph" #TYPE "NodeSetParams", nullptr, node, cudaGraphNodeType##TYPE, params, CALLER); \
    }                                                                                                                 \
    cudaError_t cudaGraphExec##TYPE##NodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,                  \
                                                   const PARAMS* params) {                                            \
        return set_params("cudaGraphExec" #TYPE "NodeSetParams", &executable, node, cudaGraphNodeType##TYPE, params,  \
                          CALLER);                                                                                    \
    }
NODE_FUNCTIONS(Kernel, cudaKernelNodeParams)
NODE_FUNCTIONS(Memcpy, cudaMemcpy3DParms)
NODE_FUNCTIONS(Memset, cudaMemsetParams)
NODE_FUNCTIONS(Host, cudaHostNodeParams)

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* before,
                                     size_t count, void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
    Copy copy = {to, from, bytes, kind};
    return add_node("cudaGraphAddMemcpyNode1D", node, graph, before, count, cudaGraphNodeTypeMemcpy, &copy, CALLER);
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* before,
                                  size_t count) {
    DeviceLock lock;
    return new_node("cudaGraphAddEmptyNode", node, graph, before, count, cudaGraphNodeTypeEmpty, CALLER);
}

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* before,
                                       size_t count, cudaGraph_t child) {
    DeviceLock lock;
    const char* call = "cudaGraphAddChildGraphNode";
    if (!graphs::find(child)) return invalid(call, executables::no_graph, CALLER);
    CUgraph_st* copy = graphs::clone(*child);
    cudaError_t error = new_node(call, node, graph, before, count, cudaGraphNodeTypeGraph, CALLER);
    if (error) {
        graphs::destroy(copy);
        return error;
    }
    copy->embedded = true;
    graphs::publish((*node)->child = copy);
    return cudaSuccess;
}

cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t handle, cudaGraph_t* graph) {
    *sandbox::result(graph) = nullptr;
    DeviceLock lock;
    CUgraphNode_st* node = graphs::find(handle);
    if (!node || !node->child)
        return invalid("cudaGraphChildGraphNodeGetGraph", node ? "the node is not a child graph" : no_node, CALLER);
    *graph = node->child;
    return cudaSuccess;
}

cudaError_t cudaGraphDestroyNode(cudaGraphNode_t handle) {
    DeviceLock lock;
    CUgraphNode_st* node = graphs::find(handle);
    if (!node) return invalid("cudaGraphDestroyNode", no_node, CALLER);
    graphs::remove(node);
    return cudaSuccess;
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                     const cudaGraphEdgeData* edges, size_t count) {
    DeviceLock lock;
    const char* call = "cudaGraphAddDependencies";
    if (!graphs::find(graph)) return invalid(call, executables::no_graph, CALLER);
    if (has_ports(edges, count))
        return refuse(call, cudaErrorNotSupported, "the simulator does not support programmatic dependencies", CALLER);
    if (!all_in_graph(graph, from, count) || !all_in_graph(graph, to, count)) return invalid(call, no_node, CALLER);
    for (size_t i = 0; i < count; ++i) {
        if (from[i] == to[i]) return invalid(call, "a node cannot depend on itself", CALLER);
        if (to[i]->before.has(from[i])) return invalid(call, "the dependency exists already", CALLER);
        to[i]->before.push(from[i]);
    }
    return cudaSuccess;
}

cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                        const cudaGraphEdgeData*, size_t count) {
    DeviceLock lock;
    const char* call = "cudaGraphRemoveDependencies";
    if (!graphs::find(graph)) return invalid(call, executables::no_graph, CALLER);
    if (!all_in_graph(graph, from, count) || !all_in_graph(graph, to, count)) return invalid(call, no_node, CALLER);
    for (size_t i = 0; i < count; ++i)
        if (!to[i]->before.remove(from[i])) return invalid(call, "the dependency does not exist", CALLER);
    return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
    DeviceLock lock;
    return answer_of("cudaGraphGetNodes", graphs::find(graph), executables::no_graph, {nodes, nullptr, nullptr, 0},
                     count, CALLER, [=](Answer& answer) {
                         for (CUgraphNode_st* node = graph->first; node; node = node->next) answer.put(node);
                     });
}

cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
    DeviceLock lock;
    return answer_of("cudaGraphGetRootNodes", graphs::find(graph), executables::no_graph, {nodes, nullptr, nullptr, 0},
                     count, CALLER, [=](Answer& answer) {
                         for (CUgraphNode_st* node = graph->first; node; node = node->next)
                             if (!node->before.size()) answer.put(node);
                     });
}

cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to, cudaGraphEdgeData* edges,
                              size_t* count) {
    DeviceLock lock;
    return answer_of("cudaGraphGetEdges", graphs::find(graph), executables::no_graph, {from, to, edges, 0}, count,
                     CALLER, [=](Answer& answer) {
                         for (CUgraphNode_st* node = graph->first; node; node = node->next)
                             for (CUgraphNode_st* before : node->before) answer.put(before, node);
                     });
}

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* nodes, cudaGraphEdgeData* edges,
                                         size_t* count) {
    DeviceLock lock;
    return answer_of("cudaGraphNodeGetDependencies", graphs::find(node), no_node, {nodes, nullptr, edges, 0}, count,
                     CALLER, [=](Answer& answer) {
                         for (CUgraphNode_st* before : node->before) answer.put(before);
                     });
}

cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* nodes, cudaGraphEdgeData* edges,
                                           size_t* count) {
    DeviceLock lock;
    return answer_of("cudaGraphNodeGetDependentNodes", graphs::find(node), no_node, {nodes, nullptr, edges, 0}, count,
                     CALLER, [=](Answer& answer) {
                         for (CUgraphNode_st* other = node->graph->first; other; other = other->next)
                             if (other->before.has(node)) answer.put(other);
                     });
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t handle, cudaGraphNodeType* type) {
    sandbox::result(type);
    DeviceLock lock;
    CUgraphNode_st* node = graphs::find(handle);
    if (!node) return invalid("cudaGraphNodeGetType", no_node, CALLER);
    *type = node->type;
    return cudaSuccess;
}

cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void* to, const void* from, size_t bytes,
                                           cudaMemcpyKind kind) {
    Copy copy = {to, from, bytes, kind};
    return set_params("cudaGraphMemcpyNodeSetParams1D", nullptr, node, cudaGraphNodeTypeMemcpy, &copy, CALLER);
}

cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t executable, cudaGraphNode_t node, void* to,
                                               const void* from, size_t bytes, cudaMemcpyKind kind) {
    Copy copy = {to, from, bytes, kind};
    return set_params("cudaGraphExecMemcpyNodeSetParams1D", &executable, node, cudaGraphNodeTypeMemcpy, &copy, CALLER);
}

}  // extern "C"
