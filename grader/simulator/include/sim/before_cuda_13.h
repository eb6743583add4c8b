// Features that CUDA 13 removed, for older programs (`grader run`, `grader nvcc`); exercises cannot use them. The warp
// functions without a mask used the active lanes: here all lanes of the warp that have not returned.
#pragma once

#define SIM_WHOLE_PROGRAM  // cuda.h has more for whole programs

#include "cuda_runtime_api.h"

enum cudaSharedMemConfig {
    cudaSharedMemBankSizeDefault = 0,
    cudaSharedMemBankSizeFourByte = 1,
    cudaSharedMemBankSizeEightByte = 2
};

SIM_API_INLINE cudaError_t cudaThreadSynchronize(void) { return cudaDeviceSynchronize(); }
SIM_API_INLINE cudaError_t cudaThreadExit(void) { return cudaDeviceReset(); }
SIM_API_INLINE cudaError_t cudaThreadSetLimit(enum cudaLimit limit, size_t value) {
    return cudaDeviceSetLimit(limit, value);
}
SIM_API_INLINE cudaError_t cudaThreadGetLimit(size_t* value, enum cudaLimit limit) {
    return cudaDeviceGetLimit(value, limit);
}
SIM_API_INLINE cudaError_t cudaThreadSetCacheConfig(enum cudaFuncCache config) {
    return cudaDeviceSetCacheConfig(config);
}
SIM_API_INLINE cudaError_t cudaDeviceSetSharedMemConfig(enum cudaSharedMemConfig config) {
    (void)config;
    return cudaSuccess;
}
SIM_API_INLINE cudaError_t cudaDeviceGetSharedMemConfig(enum cudaSharedMemConfig* config) {
    *config = cudaSharedMemBankSizeFourByte;
    return cudaSuccess;
}
#ifdef __cplusplus
template <typename Kernel>
inline cudaError_t cudaFuncSetSharedMemConfig(Kernel*, enum cudaSharedMemConfig) {
    return cudaSuccess;
}

// The signatures of the graph functions before CUDA 13, which added edge data.
inline cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from, const cudaGraphNode_t* to,
                                            size_t count) {
    return cudaGraphAddDependencies(graph, from, to, nullptr, count);
}
inline cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                               const cudaGraphNode_t* to, size_t count) {
    return cudaGraphRemoveDependencies(graph, from, to, nullptr, count);
}
inline cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to, size_t* count) {
    return cudaGraphGetEdges(graph, from, to, nullptr, count);
}
inline cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* nodes, size_t* count) {
    return cudaGraphNodeGetDependencies(node, nodes, nullptr, count);
}
inline cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* nodes, size_t* count) {
    return cudaGraphNodeGetDependentNodes(node, nodes, nullptr, count);
}
inline cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph, cudaGraphNode_t* node,
                                       enum cudaGraphExecUpdateResult* result) {
    cudaGraphExecUpdateResultInfo info = {};
    cudaError_t error = cudaGraphExecUpdate(executable, graph, &info);
    if (node) *node = info.errorNode;
    if (result) *result = info.result;
    return error;
}
#endif

#ifdef __shfl_sync
#define __shfl(...) __shfl_sync(__activemask(), __VA_ARGS__)
#define __shfl_up(...) __shfl_up_sync(__activemask(), __VA_ARGS__)
#define __shfl_down(...) __shfl_down_sync(__activemask(), __VA_ARGS__)
#define __shfl_xor(...) __shfl_xor_sync(__activemask(), __VA_ARGS__)
#define __ballot(...) __ballot_sync(__activemask(), __VA_ARGS__)
#define __all(...) __all_sync(__activemask(), __VA_ARGS__)
#define __any(...) __any_sync(__activemask(), __VA_ARGS__)
#endif
