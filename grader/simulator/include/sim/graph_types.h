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

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned int flags) SIM_SYMBOL(cudaGraphCreate);
cudaError_t cudaGraphClone(cudaGraph_t* clone, cudaGraph_t graph) SIM_SYMBOL(cudaGraphClone);
cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t* node, cudaGraphNode_t original, cudaGraph_t clone)
    SIM_SYMBOL(cudaGraphNodeFindInClone);

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                   size_t count, const struct cudaKernelNodeParams* params)
    SIM_SYMBOL(cudaGraphAddKernelNode);
cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                   size_t count, const struct cudaMemcpy3DParms* params)
    SIM_SYMBOL(cudaGraphAddMemcpyNode);
cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                     size_t count, void* to, const void* from, size_t bytes, enum cudaMemcpyKind kind)
    SIM_SYMBOL(cudaGraphAddMemcpyNode1D);
cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                   size_t count, const struct cudaMemsetParams* params)
    SIM_SYMBOL(cudaGraphAddMemsetNode);
cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                 size_t count, const struct cudaHostNodeParams* params)
    SIM_SYMBOL(cudaGraphAddHostNode);
cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                  size_t count) SIM_SYMBOL(cudaGraphAddEmptyNode);
cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                                       size_t count, cudaGraph_t child) SIM_SYMBOL(cudaGraphAddChildGraphNode);
cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t* graph)
    SIM_SYMBOL(cudaGraphChildGraphNodeGetGraph);
cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) SIM_SYMBOL(cudaGraphDestroyNode);

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                     const cudaGraphEdgeData* edges, size_t count) SIM_SYMBOL(cudaGraphAddDependencies);
cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                        const cudaGraphEdgeData* edges, size_t count)
    SIM_SYMBOL(cudaGraphRemoveDependencies);

// Each function fills at most *count elements of its arrays, and sets *count to the number that it filled. With null
// arrays it only sets *count to the number that exist.
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) SIM_SYMBOL(cudaGraphGetNodes);
cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count)
    SIM_SYMBOL(cudaGraphGetRootNodes);
cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to, cudaGraphEdgeData* edges,
                              size_t* count) SIM_SYMBOL(cudaGraphGetEdges);
cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* nodes, cudaGraphEdgeData* edges,
                                         size_t* count) SIM_SYMBOL(cudaGraphNodeGetDependencies);
cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* nodes, cudaGraphEdgeData* edges,
                                           size_t* count) SIM_SYMBOL(cudaGraphNodeGetDependentNodes);
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType* type) SIM_SYMBOL(cudaGraphNodeGetType);

cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const struct cudaKernelNodeParams* params)
    SIM_SYMBOL(cudaGraphKernelNodeSetParams);
cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const struct cudaMemcpy3DParms* params)
    SIM_SYMBOL(cudaGraphMemcpyNodeSetParams);
cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void* to, const void* from, size_t bytes,
                                           enum cudaMemcpyKind kind) SIM_SYMBOL(cudaGraphMemcpyNodeSetParams1D);
cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const struct cudaMemsetParams* params)
    SIM_SYMBOL(cudaGraphMemsetNodeSetParams);
cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node, const struct cudaHostNodeParams* params)
    SIM_SYMBOL(cudaGraphHostNodeSetParams);

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                             const struct cudaKernelNodeParams* params)
    SIM_SYMBOL(cudaGraphExecKernelNodeSetParams);
cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                             const struct cudaMemcpy3DParms* params)
    SIM_SYMBOL(cudaGraphExecMemcpyNodeSetParams);
cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t executable, cudaGraphNode_t node, void* to,
                                               const void* from, size_t bytes, enum cudaMemcpyKind kind)
    SIM_SYMBOL(cudaGraphExecMemcpyNodeSetParams1D);
cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                             const struct cudaMemsetParams* params)
    SIM_SYMBOL(cudaGraphExecMemsetNodeSetParams);
cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                           const struct cudaHostNodeParams* params)
    SIM_SYMBOL(cudaGraphExecHostNodeSetParams);
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph, cudaGraphExecUpdateResultInfo* info)
    SIM_SYMBOL(cudaGraphExecUpdate);
cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t* executable, cudaGraph_t graph,
                                           cudaGraphInstantiateParams* params)
    SIM_SYMBOL(cudaGraphInstantiateWithParams);

SIM_END_C
#pragma GCC visibility pop
