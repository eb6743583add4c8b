// The C++ side of the runtime API: functions that take a typed pointer, a variable or a kernel.
#pragma once

#include <type_traits>
#include <utility>

#include "cuda_runtime_api.h"
#include "sim/launch.h"

// Memory. The templates avoid the cast to void**, as in CUDA.
template <typename T>
inline cudaError_t cudaMalloc(T** pointer, size_t bytes) {
    return ::cudaMalloc(reinterpret_cast<void**>(pointer), bytes);
}
template <typename T>
inline cudaError_t cudaMallocPitch(T** pointer, size_t* pitch, size_t width, size_t height) {
    return ::cudaMallocPitch(reinterpret_cast<void**>(pointer), pitch, width, height);
}
template <typename T>
inline cudaError_t cudaMallocAsync(T** pointer, size_t bytes, cudaStream_t stream) {
    return ::cudaMallocAsync(reinterpret_cast<void**>(pointer), bytes, stream);
}
template <typename T>
inline cudaError_t cudaMallocFromPoolAsync(T** pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream) {
    return ::cudaMallocFromPoolAsync(reinterpret_cast<void**>(pointer), bytes, pool, stream);
}
template <typename T>
inline cudaError_t cudaMallocManaged(T** pointer, size_t bytes, unsigned int flags = cudaMemAttachGlobal) {
    return ::cudaMallocManaged(reinterpret_cast<void**>(pointer), bytes, flags);
}
template <typename T>
inline cudaError_t cudaMallocHost(T** pointer, size_t bytes, unsigned int flags = 0) {
    return ::cudaHostAlloc(reinterpret_cast<void**>(pointer), bytes, flags);
}
template <typename T>
inline cudaError_t cudaHostAlloc(T** pointer, size_t bytes, unsigned int flags) {
    return ::cudaHostAlloc(reinterpret_cast<void**>(pointer), bytes, flags);
}
template <typename T>
inline cudaError_t cudaHostGetDevicePointer(T** device, void* host, unsigned int flags) {
    return ::cudaHostGetDevicePointer(reinterpret_cast<void**>(device), host, flags);
}

// Hints about managed memory, which never migrates here. The location is a device number, or since CUDA 13 a
// cudaMemLocation.
template <typename Place>
inline cudaError_t cudaMemPrefetchAsync(const void*, size_t, Place, unsigned int, cudaStream_t = nullptr) {
    return cudaSuccess;
}
inline cudaError_t cudaMemPrefetchAsync(const void*, size_t, int, cudaStream_t = nullptr) { return cudaSuccess; }
template <typename Place>
inline cudaError_t cudaMemAdvise(const void*, size_t, cudaMemoryAdvise, Place) {
    return cudaSuccess;
}

// __device__ and __constant__ variables
template <typename T>
inline cudaError_t cudaGetSymbolAddress(void** address, const T& symbol) {
    return ::cudaGetSymbolAddress(address, static_cast<const void*>(&symbol));
}
template <typename T>
inline cudaError_t cudaGetSymbolSize(size_t* bytes, const T& symbol) {
    return ::cudaGetSymbolSize(bytes, static_cast<const void*>(&symbol));
}
template <typename T>
inline cudaError_t cudaMemcpyToSymbol(const T& symbol, const void* from, size_t bytes, size_t offset = 0,
                                      cudaMemcpyKind kind = cudaMemcpyHostToDevice) {
    return ::cudaMemcpyToSymbol(static_cast<const void*>(&symbol), from, bytes, offset, kind);
}
template <typename T>
inline cudaError_t cudaMemcpyToSymbolAsync(const T& symbol, const void* from, size_t bytes, size_t offset,
                                           cudaMemcpyKind kind, cudaStream_t stream = nullptr) {
    return ::cudaMemcpyToSymbolAsync(static_cast<const void*>(&symbol), from, bytes, offset, kind, stream);
}
template <typename T>
inline cudaError_t cudaMemcpyFromSymbol(void* to, const T& symbol, size_t bytes, size_t offset = 0,
                                        cudaMemcpyKind kind = cudaMemcpyDeviceToHost) {
    return ::cudaMemcpyFromSymbol(to, static_cast<const void*>(&symbol), bytes, offset, kind);
}
template <typename T>
inline cudaError_t cudaMemcpyFromSymbolAsync(void* to, const T& symbol, size_t bytes, size_t offset,
                                             cudaMemcpyKind kind, cudaStream_t stream = nullptr) {
    return ::cudaMemcpyFromSymbolAsync(to, static_cast<const void*>(&symbol), bytes, offset, kind, stream);
}

// The signature of CUDA 11, which later versions also accept.
inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, cudaGraphNode_t*, char*,
                                        size_t) {
    return cudaGraphInstantiate(executable, graph, 0ull);
}

// Kernels
template <typename Kernel>
inline cudaError_t cudaFuncSetAttribute(Kernel* kernel, cudaFuncAttribute attribute, int value) {
    return ::cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), attribute, value);
}
template <typename Kernel>
inline cudaError_t cudaFuncSetCacheConfig(Kernel*, cudaFuncCache) {
    return cudaSuccess;
}
template <typename Kernel>
inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, Kernel* kernel) {
    return ::cudaFuncGetAttributes(attributes, reinterpret_cast<const void*>(kernel));
}
template <typename Kernel>
inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Kernel* kernel, int threads,
                                                                 size_t dynamic_shared_bytes) {
    return ::cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, reinterpret_cast<const void*>(kernel), threads,
                                                           dynamic_shared_bytes);
}
template <typename Kernel>
inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, Kernel* kernel, int threads,
                                                                          size_t dynamic_shared_bytes, unsigned int) {
    return ::cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, reinterpret_cast<const void*>(kernel), threads,
                                                           dynamic_shared_bytes);
}
template <typename Kernel>
inline cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, Kernel* kernel, const cudaLaunchConfig_t* config) {
    return ::cudaOccupancyMaxActiveClusters(clusters, reinterpret_cast<const void*>(kernel), config);
}
template <typename Kernel>
inline cudaError_t cudaOccupancyMaxPotentialClusterSize(int* blocks, Kernel* kernel, const cudaLaunchConfig_t* config) {
    return ::cudaOccupancyMaxPotentialClusterSize(blocks, reinterpret_cast<const void*>(kernel), config);
}
template <typename Kernel>
inline cudaError_t cudaOccupancyMaxPotentialBlockSize(int* grid, int* block, Kernel* kernel,
                                                      size_t dynamic_shared_bytes = 0, int limit = 0) {
    return ::sim::best_block_size(grid, block, reinterpret_cast<const void*>(kernel), dynamic_shared_bytes, limit);
}

namespace sim {

// Launches the kernel with arguments that an array of pointers refers to. arguments[i] points to the i-th one.
template <typename... Parameters, size_t... Index>
inline void launch_from_pointers(const LaunchConfig& config, const char* name, void (*kernel)(Parameters...),
                                 void** arguments, std::index_sequence<Index...>) {
    launch(
        config, name, [=](const auto&... values) __attribute__((no_sanitize("thread"))) { kernel(values...); },
        *static_cast<typename std::decay<Parameters>::type*>(arguments[Index])...);
    (void)arguments;
}

// Registers a kernel whose address is converted to void*, so that it can be launched through that pointer.
template <typename... Parameters>
inline auto known_kernel(const char* name, void (&kernel)(Parameters...)) -> void (&)(Parameters...) {
    using Kernel = void (*)(Parameters...);
    register_kernel(reinterpret_cast<const void*>(&kernel), name,
                    [](const LaunchConfig& config, const char* known_as, void** arguments) {
                        auto* launched = reinterpret_cast<Kernel>(const_cast<void*>(config.kernel));
                        launch_from_pointers(config, known_as, launched, arguments,
                                             std::index_sequence_for<Parameters...>());
                    });
    return kernel;
}
// Overload for a variable that has the same name as a kernel: returns it unchanged.
template <typename T>
inline T& known_kernel(const char*, T& variable) {
    return variable;
}

template <typename... Parameters>
inline cudaError_t launch_kernel(const char* name, bool cooperative, void (*kernel)(Parameters...), dim3 grid,
                                 dim3 block, void** arguments, size_t dynamic_shared_bytes = 0,
                                 cudaStream_t stream = nullptr) {
    LaunchConfig config(grid, block, dynamic_shared_bytes, stream);
    config.of(reinterpret_cast<const void*>(kernel)).cooperative = cooperative;
    launch_from_pointers(config, name, kernel, arguments, std::index_sequence_for<Parameters...>());
    return cudaPeekAtLastError();
}

inline cudaError_t launch_kernel(const char* name, bool cooperative, const void* kernel, dim3 grid, dim3 block,
                                 void** arguments, size_t dynamic_shared_bytes = 0, cudaStream_t stream = nullptr) {
    LaunchConfig config(grid, block, dynamic_shared_bytes, stream);
    config.of(kernel).cooperative = cooperative;
    return launch_registered(name, config, arguments);
}

inline LaunchConfig config_of(const cudaLaunchConfig_t* wanted, const void* kernel) {
    LaunchConfig config(wanted->sim_gridDim, wanted->sim_blockDim, wanted->dynamicSmemBytes, wanted->stream);
    return config.of(kernel).attributes(wanted->attrs, wanted->numAttrs);
}

template <typename... Parameters, typename... Arguments>
inline cudaError_t launch_with(const char* name, const cudaLaunchConfig_t* wanted, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
    LaunchConfig config = config_of(wanted, reinterpret_cast<const void*>(kernel));
    launch(
        config, name, [=](const auto&... values) __attribute__((no_sanitize("thread"))) { kernel(values...); },
        static_cast<typename std::decay<Parameters>::type>(std::forward<Arguments>(arguments))...);
    return cudaPeekAtLastError();
}

template <typename... Parameters>
inline cudaError_t launch_with_pointers(const char* name, const cudaLaunchConfig_t* wanted,
                                        void (*kernel)(Parameters...), void** arguments) {
    LaunchConfig config = config_of(wanted, reinterpret_cast<const void*>(kernel));
    launch_from_pointers(config, name, kernel, arguments, std::index_sequence_for<Parameters...>());
    return cudaPeekAtLastError();
}
inline cudaError_t launch_with_pointers(const char* name, const cudaLaunchConfig_t* wanted, const void* kernel,
                                        void** arguments) {
    return launch_registered(name, config_of(wanted, kernel), arguments);
}

}  // namespace sim

// Macros, because #KERNEL gives the kernel's name.
#define cudaLaunchKernel(...) ::sim::launch_kernel(#__VA_ARGS__, false, __VA_ARGS__)
#define cudaLaunchCooperativeKernel(...) ::sim::launch_kernel(#__VA_ARGS__, true, __VA_ARGS__)
#define cudaLaunchKernelEx(CONFIG, KERNEL, ...) ::sim::launch_with(#KERNEL, CONFIG, KERNEL, ##__VA_ARGS__)
#define cudaLaunchKernelExC(CONFIG, KERNEL, ...) ::sim::launch_with_pointers(#KERNEL, CONFIG, KERNEL, ##__VA_ARGS__)
