// Graphs that are built node by node.
#pragma once

#include "driver_types.h"
#include "sim/array_types.h"
#include "sim/symbol.h"

enum cudaGraphNodeType {
    cudaGraphNodeTypeKernel = 0,
    cudaGraphNodeTypeMemcpy = 1,
    cudaGraphNodeTypeMemset = 2,
    cudaGraphNodeTypeHost = 3,
    cudaGraphNodeTypeGraph = 4,
    cudaGraphNodeTypeEmpty = 5,
    cudaGraphNodeTypeWaitEvent = 6,
    cudaGraphNodeTypeEventRecord = 7,
    cudaGraphNodeTypeMemAlloc = 10,
    cudaGraphNodeTypeMemFree = 11,
    cudaGraphNodeTypeConditional = 13
};

enum cudaGraphExecUpdateResult {
    cudaGraphExecUpdateSuccess = 0,
    cudaGraphExecUpdateError = 1,
    cudaGraphExecUpdateErrorTopologyChanged = 2,
    cudaGraphExecUpdateErrorNodeTypeChanged = 3,
    cudaGraphExecUpdateErrorFunctionChanged = 4,
    cudaGraphExecUpdateErrorParametersChanged = 5,
    cudaGraphExecUpdateErrorNotSupported = 6,
    cudaGraphExecUpdateErrorUnsupportedFunctionChange = 7,
    cudaGraphExecUpdateErrorAttributesChanged = 8
};

typedef enum cudaGraphInstantiateResult {
    cudaGraphInstantiateSuccess = 0,
    cudaGraphInstantiateError = 1,
    cudaGraphInstantiateInvalidStructure = 2
} cudaGraphInstantiateResult;

struct cudaKernelNodeParams {
    void* func;
    dim3 sim_gridDim;  // renamed as in cudaLaunchConfig_t
    dim3 sim_blockDim;
    unsigned int sharedMemBytes;
    void** kernelParams;
    void** extra;
};

struct cudaMemsetParams {
    void* dst;
    size_t pitch;
    unsigned int value;
    unsigned int elementSize;  // 1, 2 or 4 bytes
    size_t width;              // number of elements in a row
    size_t height;
};

struct cudaHostNodeParams {
    cudaHostFn_t fn;
    void* userData;
};

typedef struct cudaGraphEdgeData {
    unsigned char from_port, to_port, type, reserved[5];
} cudaGraphEdgeData;

typedef struct cudaGraphExecUpdateResultInfo {
    enum cudaGraphExecUpdateResult result;
    cudaGraphNode_t errorNode;
    cudaGraphNode_t errorFromNode;
} cudaGraphExecUpdateResultInfo;

typedef struct cudaGraphInstantiateParams {
    unsigned long long flags;
    cudaStream_t uploadStream;
    cudaGraphNode_t errNode_out;
    cudaGraphInstantiateResult result_out;
} cudaGraphInstantiateParams;

#pragma GCC visibility push(default)
SIM_BEGIN_C

SIM_API(cudaGraphCreate, cudaGraph_t* graph, unsigned int flags);
SIM_API(cudaGraphClone, cudaGraph_t* clone, cudaGraph_t graph);
SIM_API(cudaGraphNodeFindInClone, cudaGraphNode_t* node, cudaGraphNode_t original, cudaGraph_t clone);

SIM_API(cudaGraphAddKernelNode, cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
        size_t count, const struct cudaKernelNodeParams* params);
SIM_API(cudaGraphAddMemcpyNode, cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
        size_t count, const struct cudaMemcpy3DParms* params);
SIM_API(cudaGraphAddMemcpyNode1D, cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
        size_t count, void* to, const void* from, size_t bytes, enum cudaMemcpyKind kind);
SIM_API(cudaGraphAddMemsetNode, cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
        size_t count, const struct cudaMemsetParams* params);
SIM_API(cudaGraphAddHostNode, cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
        size_t count, const struct cudaHostNodeParams* params);
SIM_API(cudaGraphAddEmptyNode, cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
        size_t count);
SIM_API(cudaGraphAddChildGraphNode, cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
        size_t count, cudaGraph_t child);
SIM_API(cudaGraphChildGraphNodeGetGraph, cudaGraphNode_t node, cudaGraph_t* graph);
SIM_API(cudaGraphDestroyNode, cudaGraphNode_t node);

SIM_API(cudaGraphAddDependencies, cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
        const cudaGraphEdgeData* edges, size_t count);
SIM_API(cudaGraphRemoveDependencies, cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
        const cudaGraphEdgeData* edges, size_t count);

// Each function fills at most *count elements of its arrays, and sets *count to the number that it filled. With null
// arrays it only sets *count to the number that exist.
SIM_API(cudaGraphGetNodes, cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count);
SIM_API(cudaGraphGetRootNodes, cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count);
SIM_API(cudaGraphGetEdges, cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to, cudaGraphEdgeData* edges,
        size_t* count);
SIM_API(cudaGraphNodeGetDependencies, cudaGraphNode_t node, cudaGraphNode_t* nodes, cudaGraphEdgeData* edges,
        size_t* count);
SIM_API(cudaGraphNodeGetDependentNodes, cudaGraphNode_t node, cudaGraphNode_t* nodes, cudaGraphEdgeData* edges,
        size_t* count);
SIM_API(cudaGraphNodeGetType, cudaGraphNode_t node, enum cudaGraphNodeType* type);

SIM_API(cudaGraphKernelNodeSetParams, cudaGraphNode_t node, const struct cudaKernelNodeParams* params);
SIM_API(cudaGraphMemcpyNodeSetParams, cudaGraphNode_t node, const struct cudaMemcpy3DParms* params);
SIM_API(cudaGraphMemcpyNodeSetParams1D, cudaGraphNode_t node, void* to, const void* from, size_t bytes,
        enum cudaMemcpyKind kind);
SIM_API(cudaGraphMemsetNodeSetParams, cudaGraphNode_t node, const struct cudaMemsetParams* params);
SIM_API(cudaGraphHostNodeSetParams, cudaGraphNode_t node, const struct cudaHostNodeParams* params);

SIM_API(cudaGraphExecKernelNodeSetParams, cudaGraphExec_t executable, cudaGraphNode_t node,
        const struct cudaKernelNodeParams* params);
SIM_API(cudaGraphExecMemcpyNodeSetParams, cudaGraphExec_t executable, cudaGraphNode_t node,
        const struct cudaMemcpy3DParms* params);
SIM_API(cudaGraphExecMemcpyNodeSetParams1D, cudaGraphExec_t executable, cudaGraphNode_t node, void* to,
        const void* from, size_t bytes, enum cudaMemcpyKind kind);
SIM_API(cudaGraphExecMemsetNodeSetParams, cudaGraphExec_t executable, cudaGraphNode_t node,
        const struct cudaMemsetParams* params);
SIM_API(cudaGraphExecHostNodeSetParams, cudaGraphExec_t executable, cudaGraphNode_t node,
        const struct cudaHostNodeParams* params);
SIM_API(cudaGraphExecUpdate, cudaGraphExec_t executable, cudaGraph_t graph, cudaGraphExecUpdateResultInfo* info);
SIM_API(cudaGraphInstantiateWithParams, cudaGraphExec_t* executable, cudaGraph_t graph,
        cudaGraphInstantiateParams* params);

SIM_END_C
#pragma GCC visibility pop
