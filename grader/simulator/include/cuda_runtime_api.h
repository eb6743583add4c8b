// The runtime API as C programs see it. Operations are performed in the order of the calls; the checks know the order
// that streams, events and synchronization guarantee. Symbols differ from NVIDIA's: see sim/symbol.h.
#pragma once

#include "driver_types.h"
#include "host_defines.h"
#include "library_types.h"
#include "sim/symbol.h"
#include "vector_types.h"

#define CUDART_VERSION 13000
#define __CUDA_RUNTIME_API_H__

#pragma GCC visibility push(default)
SIM_BEGIN_C

// Errors
SIM_API(cudaGetLastError, void);
SIM_API(cudaPeekAtLastError, void);
const char* cudaGetErrorString(cudaError_t error) SIM_SYMBOL(cudaGetErrorString);
const char* cudaGetErrorName(cudaError_t error) SIM_SYMBOL(cudaGetErrorName);

// Device
SIM_API(cudaGetDeviceCount, int* count);
SIM_API(cudaGetDevice, int* device);
SIM_API(cudaSetDevice, int device);
SIM_API(cudaGetDeviceProperties, struct cudaDeviceProp* properties, int device);
SIM_API(cudaDeviceGetAttribute, int* value, enum cudaDeviceAttr attribute, int device);
SIM_API(cudaDeviceSynchronize, void);
SIM_API(cudaDeviceReset, void);
SIM_API(cudaDeviceSetLimit, enum cudaLimit limit, size_t value);
SIM_API(cudaDeviceGetLimit, size_t* value, enum cudaLimit limit);
SIM_API(cudaDeviceSetCacheConfig, enum cudaFuncCache config);
SIM_API(cudaRuntimeGetVersion, int* version);
SIM_API(cudaDriverGetVersion, int* version);
SIM_API(cudaSetDeviceFlags, unsigned int flags);
// The supported function of the driver: cuTensorMapEncodeTiled (cuda.h).
SIM_API(cudaGetDriverEntryPoint, const char* symbol, void** function, unsigned long long flags,
        cudaDriverEntryPointQueryResult* status SIM_DEFAULT(nullptr));
SIM_API(cudaGetDriverEntryPointByVersion, const char* symbol, void** function, unsigned int version,
        unsigned long long flags, cudaDriverEntryPointQueryResult* status SIM_DEFAULT(nullptr));

// Memory
SIM_API(cudaMalloc, void** pointer, size_t bytes);
SIM_API(cudaMallocPitch, void** pointer, size_t* pitch, size_t width, size_t height);
SIM_API(cudaMallocAsync, void** pointer, size_t bytes, cudaStream_t stream);
SIM_API(cudaMallocFromPoolAsync, void** pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream);
SIM_API(cudaMallocManaged, void** pointer, size_t bytes, unsigned int flags SIM_DEFAULT(cudaMemAttachGlobal));
SIM_API(cudaMallocHost, void** pointer, size_t bytes);
SIM_API(cudaHostAlloc, void** pointer, size_t bytes, unsigned int flags);
SIM_API(cudaFree, void* pointer);
SIM_API(cudaFreeHost, void* pointer);
SIM_API(cudaFreeAsync, void* pointer, cudaStream_t stream);
SIM_API(cudaMemcpy, void* to, const void* from, size_t bytes, enum cudaMemcpyKind kind);
SIM_API(cudaMemcpyAsync, void* to, const void* from, size_t bytes, enum cudaMemcpyKind kind,
        cudaStream_t stream SIM_DEFAULT(nullptr));
SIM_API(cudaMemcpy2D, void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
        enum cudaMemcpyKind kind);
SIM_API(cudaMemcpy2DAsync, void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
        enum cudaMemcpyKind kind, cudaStream_t stream SIM_DEFAULT(nullptr));
SIM_API(cudaMemset, void* pointer, int value, size_t bytes);
SIM_API(cudaMemsetAsync, void* pointer, int value, size_t bytes, cudaStream_t stream SIM_DEFAULT(nullptr));
SIM_API(cudaMemset2D, void* pointer, size_t pitch, int value, size_t width, size_t height);
SIM_API(cudaMemset2DAsync, void* pointer, size_t pitch, int value, size_t width, size_t height,
        cudaStream_t stream SIM_DEFAULT(nullptr));
SIM_API(cudaMemGetInfo, size_t* free_bytes, size_t* total_bytes);
SIM_API(cudaPointerGetAttributes, struct cudaPointerAttributes* attributes, const void* pointer);
SIM_API(cudaDeviceGetDefaultMemPool, cudaMemPool_t* pool, int device);
SIM_API(cudaMemPoolTrimTo, cudaMemPool_t pool, size_t bytes_to_keep);

// __device__ and __constant__ variables, and kernels, by their addresses
SIM_API(cudaGetSymbolAddress, void** address, const void* symbol);
SIM_API(cudaGetSymbolSize, size_t* bytes, const void* symbol);
SIM_API(cudaMemcpyToSymbol, const void* symbol, const void* from, size_t bytes, size_t offset SIM_DEFAULT(0),
        enum cudaMemcpyKind kind SIM_DEFAULT(cudaMemcpyHostToDevice));
SIM_API(cudaMemcpyToSymbolAsync, const void* symbol, const void* from, size_t bytes, size_t offset,
        enum cudaMemcpyKind kind, cudaStream_t stream SIM_DEFAULT(nullptr));
SIM_API(cudaMemcpyFromSymbol, void* to, const void* symbol, size_t bytes, size_t offset SIM_DEFAULT(0),
        enum cudaMemcpyKind kind SIM_DEFAULT(cudaMemcpyDeviceToHost));
SIM_API(cudaMemcpyFromSymbolAsync, void* to, const void* symbol, size_t bytes, size_t offset, enum cudaMemcpyKind kind,
        cudaStream_t stream SIM_DEFAULT(nullptr));
SIM_API(cudaFuncSetAttribute, const void* kernel, enum cudaFuncAttribute attribute, int value);
SIM_API(cudaFuncSetCacheConfig, const void* kernel, enum cudaFuncCache config);
SIM_API(cudaFuncGetAttributes, struct cudaFuncAttributes* attributes, const void* kernel);
SIM_API(cudaOccupancyMaxActiveBlocksPerMultiprocessor, int* blocks, const void* kernel, int threads,
        size_t dynamic_shared_bytes);
SIM_API(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, int* blocks, const void* kernel, int threads,
        size_t dynamic_shared_bytes, unsigned int flags);
SIM_API(cudaOccupancyMaxActiveClusters, int* clusters, const void* kernel, const cudaLaunchConfig_t* config);
SIM_API(cudaOccupancyMaxPotentialClusterSize, int* blocks, const void* kernel, const cudaLaunchConfig_t* config);
SIM_API(cudaLaunchKernel, const void* kernel, dim3 grid, dim3 block, void** arguments, size_t dynamic_shared_bytes,
        cudaStream_t stream);
SIM_API(cudaLaunchCooperativeKernel, const void* kernel, dim3 grid, dim3 block, void** arguments,
        size_t dynamic_shared_bytes, cudaStream_t stream);
SIM_API(cudaLaunchKernelExC, const cudaLaunchConfig_t* config, const void* kernel, void** arguments);

// Streams and events
SIM_API(cudaStreamCreate, cudaStream_t* stream);
SIM_API(cudaStreamCreateWithFlags, cudaStream_t* stream, unsigned int flags);
SIM_API(cudaStreamCreateWithPriority, cudaStream_t* stream, unsigned int flags, int priority);
SIM_API(cudaStreamDestroy, cudaStream_t stream);
SIM_API(cudaStreamSynchronize, cudaStream_t stream);
SIM_API(cudaStreamQuery, cudaStream_t stream);
SIM_API(cudaStreamWaitEvent, cudaStream_t stream, cudaEvent_t event, unsigned int flags SIM_DEFAULT(0));
SIM_API(cudaStreamAddCallback, cudaStream_t stream, cudaStreamCallback_t callback, void* data, unsigned int flags);
SIM_API(cudaLaunchHostFunc, cudaStream_t stream, cudaHostFn_t function, void* data);
SIM_API(cudaDeviceGetStreamPriorityRange, int* least, int* greatest);
SIM_API(cudaEventCreate, cudaEvent_t* event);
SIM_API(cudaEventCreateWithFlags, cudaEvent_t* event, unsigned int flags);
SIM_API(cudaEventDestroy, cudaEvent_t event);
SIM_API(cudaEventRecord, cudaEvent_t event, cudaStream_t stream SIM_DEFAULT(nullptr));
SIM_API(cudaEventRecordWithFlags, cudaEvent_t event, cudaStream_t stream SIM_DEFAULT(nullptr),
        unsigned int flags SIM_DEFAULT(0));
SIM_API(cudaEventSynchronize, cudaEvent_t event);
SIM_API(cudaEventQuery, cudaEvent_t event);
SIM_API(cudaEventElapsedTime, float* milliseconds, cudaEvent_t start, cudaEvent_t end);

// Graphs; sim/graph_types.h has their nodes
SIM_API(cudaStreamBeginCapture, cudaStream_t stream, enum cudaStreamCaptureMode mode);
SIM_API(cudaStreamEndCapture, cudaStream_t stream, cudaGraph_t* graph);
SIM_API(cudaStreamIsCapturing, cudaStream_t stream, enum cudaStreamCaptureStatus* status);
SIM_API(cudaGraphInstantiate, cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags SIM_DEFAULT(0));
SIM_API(cudaGraphInstantiateWithFlags, cudaGraphExec_t* executable, cudaGraph_t graph,
        unsigned long long flags SIM_DEFAULT(0));
SIM_API(cudaGraphUpload, cudaGraphExec_t graph, cudaStream_t stream);
SIM_API(cudaGraphLaunch, cudaGraphExec_t graph, cudaStream_t stream);
SIM_API(cudaGraphExecDestroy, cudaGraphExec_t graph);
SIM_API(cudaGraphDestroy, cudaGraph_t graph);

SIM_END_C

#ifdef __cplusplus
inline cudaError_t cudaEventCreate(cudaEvent_t* event, unsigned int flags) {
    return cudaEventCreateWithFlags(event, flags);
}
#endif
// These calls have no effect, because there is no profiler.
SIM_API_INLINE cudaError_t cudaProfilerStart(void) { return cudaSuccess; }
SIM_API_INLINE cudaError_t cudaProfilerStop(void) { return cudaSuccess; }

#include "sim/graph_types.h"
#include "sim/one_device.h"

#ifdef __cplusplus
namespace sim {

// Used by the templates of cuda_runtime.h.
cudaError_t best_block_size(int* grid, int* block, const void* kernel, size_t dynamic_shared_bytes, int limit);
struct LaunchConfig;
cudaError_t launch_registered(const char* name, const LaunchConfig& config, void** arguments);

}  // namespace sim
#endif
#pragma GCC visibility pop
#ifdef SIM_HOST_FILE
#include "sim/before_cuda_13.h"
#endif
