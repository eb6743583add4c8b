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
cudaError_t cudaGetLastError(void) SIM_SYMBOL(cudaGetLastError);
cudaError_t cudaPeekAtLastError(void) SIM_SYMBOL(cudaPeekAtLastError);
const char* cudaGetErrorString(cudaError_t error) SIM_SYMBOL(cudaGetErrorString);
const char* cudaGetErrorName(cudaError_t error) SIM_SYMBOL(cudaGetErrorName);

// Device
cudaError_t cudaGetDeviceCount(int* count) SIM_SYMBOL(cudaGetDeviceCount);
cudaError_t cudaGetDevice(int* device) SIM_SYMBOL(cudaGetDevice);
cudaError_t cudaSetDevice(int device) SIM_SYMBOL(cudaSetDevice);
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp* properties, int device) SIM_SYMBOL(cudaGetDeviceProperties);
cudaError_t cudaDeviceGetAttribute(int* value, enum cudaDeviceAttr attribute, int device)
    SIM_SYMBOL(cudaDeviceGetAttribute);
cudaError_t cudaDeviceSynchronize(void) SIM_SYMBOL(cudaDeviceSynchronize);
cudaError_t cudaDeviceReset(void) SIM_SYMBOL(cudaDeviceReset);
cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value) SIM_SYMBOL(cudaDeviceSetLimit);
cudaError_t cudaDeviceGetLimit(size_t* value, enum cudaLimit limit) SIM_SYMBOL(cudaDeviceGetLimit);
cudaError_t cudaDeviceSetCacheConfig(enum cudaFuncCache config) SIM_SYMBOL(cudaDeviceSetCacheConfig);
cudaError_t cudaRuntimeGetVersion(int* version) SIM_SYMBOL(cudaRuntimeGetVersion);
cudaError_t cudaDriverGetVersion(int* version) SIM_SYMBOL(cudaDriverGetVersion);
cudaError_t cudaSetDeviceFlags(unsigned int flags) SIM_SYMBOL(cudaSetDeviceFlags);
// The supported function of the driver: cuTensorMapEncodeTiled (cuda.h).
cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long flags,
                                    cudaDriverEntryPointQueryResult* status SIM_DEFAULT(nullptr))
    SIM_SYMBOL(cudaGetDriverEntryPoint);
cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned int version,
                                             unsigned long long flags,
                                             cudaDriverEntryPointQueryResult* status SIM_DEFAULT(nullptr))
    SIM_SYMBOL(cudaGetDriverEntryPointByVersion);

// Memory
cudaError_t cudaMalloc(void** pointer, size_t bytes) SIM_SYMBOL(cudaMalloc);
cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) SIM_SYMBOL(cudaMallocPitch);
cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t stream) SIM_SYMBOL(cudaMallocAsync);
cudaError_t cudaMallocFromPoolAsync(void** pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream)
    SIM_SYMBOL(cudaMallocFromPoolAsync);
cudaError_t cudaMallocManaged(void** pointer, size_t bytes, unsigned int flags SIM_DEFAULT(cudaMemAttachGlobal))
    SIM_SYMBOL(cudaMallocManaged);
cudaError_t cudaMallocHost(void** pointer, size_t bytes) SIM_SYMBOL(cudaMallocHost);
cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned int flags) SIM_SYMBOL(cudaHostAlloc);
cudaError_t cudaFree(void* pointer) SIM_SYMBOL(cudaFree);
cudaError_t cudaFreeHost(void* pointer) SIM_SYMBOL(cudaFreeHost);
cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) SIM_SYMBOL(cudaFreeAsync);
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, enum cudaMemcpyKind kind) SIM_SYMBOL(cudaMemcpy);
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream SIM_DEFAULT(nullptr)) SIM_SYMBOL(cudaMemcpyAsync);
cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                         enum cudaMemcpyKind kind) SIM_SYMBOL(cudaMemcpy2D);
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                              size_t height, enum cudaMemcpyKind kind, cudaStream_t stream SIM_DEFAULT(nullptr))
    SIM_SYMBOL(cudaMemcpy2DAsync);
cudaError_t cudaMemset(void* pointer, int value, size_t bytes) SIM_SYMBOL(cudaMemset);
cudaError_t cudaMemsetAsync(void* pointer, int value, size_t bytes, cudaStream_t stream SIM_DEFAULT(nullptr))
    SIM_SYMBOL(cudaMemsetAsync);
cudaError_t cudaMemset2D(void* pointer, size_t pitch, int value, size_t width, size_t height) SIM_SYMBOL(cudaMemset2D);
cudaError_t cudaMemset2DAsync(void* pointer, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream SIM_DEFAULT(nullptr)) SIM_SYMBOL(cudaMemset2DAsync);
cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) SIM_SYMBOL(cudaMemGetInfo);
cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes* attributes, const void* pointer)
    SIM_SYMBOL(cudaPointerGetAttributes);
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) SIM_SYMBOL(cudaDeviceGetDefaultMemPool);
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t bytes_to_keep) SIM_SYMBOL(cudaMemPoolTrimTo);

// __device__ and __constant__ variables, and kernels, by their addresses
cudaError_t cudaGetSymbolAddress(void** address, const void* symbol) SIM_SYMBOL(cudaGetSymbolAddress);
cudaError_t cudaGetSymbolSize(size_t* bytes, const void* symbol) SIM_SYMBOL(cudaGetSymbolSize);
cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, size_t bytes, size_t offset SIM_DEFAULT(0),
                               enum cudaMemcpyKind kind SIM_DEFAULT(cudaMemcpyHostToDevice))
    SIM_SYMBOL(cudaMemcpyToSymbol);
cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* from, size_t bytes, size_t offset,
                                    enum cudaMemcpyKind kind, cudaStream_t stream SIM_DEFAULT(nullptr))
    SIM_SYMBOL(cudaMemcpyToSymbolAsync);
cudaError_t cudaMemcpyFromSymbol(void* to, const void* symbol, size_t bytes, size_t offset SIM_DEFAULT(0),
                                 enum cudaMemcpyKind kind SIM_DEFAULT(cudaMemcpyDeviceToHost))
    SIM_SYMBOL(cudaMemcpyFromSymbol);
cudaError_t cudaMemcpyFromSymbolAsync(void* to, const void* symbol, size_t bytes, size_t offset,
                                      enum cudaMemcpyKind kind, cudaStream_t stream SIM_DEFAULT(nullptr))
    SIM_SYMBOL(cudaMemcpyFromSymbolAsync);
cudaError_t cudaFuncSetAttribute(const void* kernel, enum cudaFuncAttribute attribute, int value)
    SIM_SYMBOL(cudaFuncSetAttribute);
cudaError_t cudaFuncSetCacheConfig(const void* kernel, enum cudaFuncCache config) SIM_SYMBOL(cudaFuncSetCacheConfig);
cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes* attributes, const void* kernel)
    SIM_SYMBOL(cudaFuncGetAttributes);
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* kernel, int threads,
                                                          size_t dynamic_shared_bytes)
    SIM_SYMBOL(cudaOccupancyMaxActiveBlocksPerMultiprocessor);
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* kernel, int threads,
                                                                   size_t dynamic_shared_bytes, unsigned int flags)
    SIM_SYMBOL(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags);
cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, const void* kernel, const cudaLaunchConfig_t* config)
    SIM_SYMBOL(cudaOccupancyMaxActiveClusters);
cudaError_t cudaOccupancyMaxPotentialClusterSize(int* blocks, const void* kernel, const cudaLaunchConfig_t* config)
    SIM_SYMBOL(cudaOccupancyMaxPotentialClusterSize);
cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** arguments, size_t dynamic_shared_bytes,
                             cudaStream_t stream) SIM_SYMBOL(cudaLaunchKernel);
cudaError_t cudaLaunchCooperativeKernel(const void* kernel, dim3 grid, dim3 block, void** arguments,
                                        size_t dynamic_shared_bytes, cudaStream_t stream)
    SIM_SYMBOL(cudaLaunchCooperativeKernel);
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* kernel, void** arguments)
    SIM_SYMBOL(cudaLaunchKernelExC);

// Streams and events
cudaError_t cudaStreamCreate(cudaStream_t* stream) SIM_SYMBOL(cudaStreamCreate);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags) SIM_SYMBOL(cudaStreamCreateWithFlags);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int flags, int priority)
    SIM_SYMBOL(cudaStreamCreateWithPriority);
cudaError_t cudaStreamDestroy(cudaStream_t stream) SIM_SYMBOL(cudaStreamDestroy);
cudaError_t cudaStreamSynchronize(cudaStream_t stream) SIM_SYMBOL(cudaStreamSynchronize);
cudaError_t cudaStreamQuery(cudaStream_t stream) SIM_SYMBOL(cudaStreamQuery);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags SIM_DEFAULT(0))
    SIM_SYMBOL(cudaStreamWaitEvent);
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* data, unsigned int flags)
    SIM_SYMBOL(cudaStreamAddCallback);
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) SIM_SYMBOL(cudaLaunchHostFunc);
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) SIM_SYMBOL(cudaDeviceGetStreamPriorityRange);
cudaError_t cudaEventCreate(cudaEvent_t* event) SIM_SYMBOL(cudaEventCreate);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags) SIM_SYMBOL(cudaEventCreateWithFlags);
cudaError_t cudaEventDestroy(cudaEvent_t event) SIM_SYMBOL(cudaEventDestroy);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream SIM_DEFAULT(nullptr)) SIM_SYMBOL(cudaEventRecord);
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream SIM_DEFAULT(nullptr),
                                     unsigned int flags SIM_DEFAULT(0)) SIM_SYMBOL(cudaEventRecordWithFlags);
cudaError_t cudaEventSynchronize(cudaEvent_t event) SIM_SYMBOL(cudaEventSynchronize);
cudaError_t cudaEventQuery(cudaEvent_t event) SIM_SYMBOL(cudaEventQuery);
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end)
    SIM_SYMBOL(cudaEventElapsedTime);

// Graphs; sim/graph_types.h has their nodes
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
    SIM_SYMBOL(cudaStreamBeginCapture);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) SIM_SYMBOL(cudaStreamEndCapture);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus* status)
    SIM_SYMBOL(cudaStreamIsCapturing);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long flags SIM_DEFAULT(0)) SIM_SYMBOL(cudaGraphInstantiate);
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph,
                                          unsigned long long flags SIM_DEFAULT(0))
    SIM_SYMBOL(cudaGraphInstantiateWithFlags);
cudaError_t cudaGraphUpload(cudaGraphExec_t graph, cudaStream_t stream) SIM_SYMBOL(cudaGraphUpload);
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream) SIM_SYMBOL(cudaGraphLaunch);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph) SIM_SYMBOL(cudaGraphExecDestroy);
cudaError_t cudaGraphDestroy(cudaGraph_t graph) SIM_SYMBOL(cudaGraphDestroy);

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
