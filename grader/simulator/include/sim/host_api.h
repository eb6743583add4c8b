// The C++ side of the runtime API: functions that take a typed pointer, a variable or a kernel.
#pragma once

#include <type_traits>
#include <utility>

#include "cuda_runtime_api.h"
#include "sim/launch.h"

// A function that takes a typed pointer, a variable or a kernel, and passes its address on.
#define SIM_OF_TYPE(NAME, PARAMETERS, CALL) \
    template <typename T>                   \
    inline cudaError_t NAME PARAMETERS {    \
        return ::CALL;                      \
    }
#define SIM_ADDRESS(pointer) reinterpret_cast<void**>(pointer)
#define SIM_SYMBOL_OF(variable) static_cast<const void*>(&variable)
#define SIM_KERNEL(kernel) reinterpret_cast<const void*>(kernel)
// clang-format off
SIM_OF_TYPE(cudaMalloc, (T** pointer, size_t bytes), cudaMalloc(SIM_ADDRESS(pointer), bytes))
SIM_OF_TYPE(cudaMallocPitch, (T** pointer, size_t* pitch, size_t width, size_t height),
            cudaMallocPitch(SIM_ADDRESS(pointer), pitch, width, height))
SIM_OF_TYPE(cudaMallocAsync, (T** pointer, size_t bytes, cudaStream_t stream),
            cudaMallocAsync(SIM_ADDRESS(pointer), bytes, stream))
SIM_OF_TYPE(cudaMallocFromPoolAsync, (T** pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream),
            cudaMallocFromPoolAsync(SIM_ADDRESS(pointer), bytes, pool, stream))
SIM_OF_TYPE(cudaMallocManaged, (T** pointer, size_t bytes, unsigned int flags = cudaMemAttachGlobal),
            cudaMallocManaged(SIM_ADDRESS(pointer), bytes, flags))
SIM_OF_TYPE(cudaMallocHost, (T** pointer, size_t bytes, unsigned int flags = 0),
            cudaHostAlloc(SIM_ADDRESS(pointer), bytes, flags))
SIM_OF_TYPE(cudaHostAlloc, (T** pointer, size_t bytes, unsigned int flags),
            cudaHostAlloc(SIM_ADDRESS(pointer), bytes, flags))
SIM_OF_TYPE(cudaHostGetDevicePointer, (T** device, void* host, unsigned int flags),
            cudaHostGetDevicePointer(SIM_ADDRESS(device), host, flags))

SIM_OF_TYPE(cudaGetSymbolAddress, (void** address, const T& symbol),
            cudaGetSymbolAddress(address, SIM_SYMBOL_OF(symbol)))
SIM_OF_TYPE(cudaGetSymbolSize, (size_t* bytes, const T& symbol), cudaGetSymbolSize(bytes, SIM_SYMBOL_OF(symbol)))
SIM_OF_TYPE(cudaMemcpyToSymbol, (const T& symbol, const void* from, size_t bytes, size_t offset = 0,
                                 cudaMemcpyKind kind = cudaMemcpyHostToDevice),
            cudaMemcpyToSymbol(SIM_SYMBOL_OF(symbol), from, bytes, offset, kind))
SIM_OF_TYPE(cudaMemcpyToSymbolAsync, (const T& symbol, const void* from, size_t bytes, size_t offset,
                                      cudaMemcpyKind kind, cudaStream_t stream = nullptr),
            cudaMemcpyToSymbolAsync(SIM_SYMBOL_OF(symbol), from, bytes, offset, kind, stream))
SIM_OF_TYPE(cudaMemcpyFromSymbol, (void* to, const T& symbol, size_t bytes, size_t offset = 0,
                                   cudaMemcpyKind kind = cudaMemcpyDeviceToHost),
            cudaMemcpyFromSymbol(to, SIM_SYMBOL_OF(symbol), bytes, offset, kind))
SIM_OF_TYPE(cudaMemcpyFromSymbolAsync, (void* to, const T& symbol, size_t bytes, size_t offset,
                                        cudaMemcpyKind kind, cudaStream_t stream = nullptr),
            cudaMemcpyFromSymbolAsync(to, SIM_SYMBOL_OF(symbol), bytes, offset, kind, stream))

SIM_OF_TYPE(cudaFuncSetAttribute, (T* kernel, cudaFuncAttribute attribute, int value),
            cudaFuncSetAttribute(SIM_KERNEL(kernel), attribute, value))
SIM_OF_TYPE(cudaFuncSetCacheConfig, (T* kernel, cudaFuncCache config),
            cudaFuncSetCacheConfig(SIM_KERNEL(kernel), config))
SIM_OF_TYPE(cudaFuncGetAttributes, (cudaFuncAttributes* attributes, T* kernel),
            cudaFuncGetAttributes(attributes, SIM_KERNEL(kernel)))
SIM_OF_TYPE(cudaOccupancyMaxActiveBlocksPerMultiprocessor, (int* blocks, T* kernel, int threads, size_t dynamic),
            cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, SIM_KERNEL(kernel), threads, dynamic))
SIM_OF_TYPE(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
            (int* blocks, T* kernel, int threads, size_t dynamic, unsigned int),
            cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, SIM_KERNEL(kernel), threads, dynamic))
SIM_OF_TYPE(cudaOccupancyMaxActiveClusters, (int* clusters, T* kernel, const cudaLaunchConfig_t* config),
            cudaOccupancyMaxActiveClusters(clusters, SIM_KERNEL(kernel), config))
SIM_OF_TYPE(cudaOccupancyMaxPotentialClusterSize, (int* blocks, T* kernel, const cudaLaunchConfig_t* config),
            cudaOccupancyMaxPotentialClusterSize(blocks, SIM_KERNEL(kernel), config))
SIM_OF_TYPE(cudaOccupancyMaxPotentialBlockSize,
            (int* grid, int* block, T* kernel, size_t dynamic = 0, int limit = 0),
            sim::best_block_size(grid, block, SIM_KERNEL(kernel), dynamic, limit))
// clang-format on
#undef SIM_OF_TYPE
#undef SIM_ADDRESS
#undef SIM_SYMBOL_OF
#undef SIM_KERNEL

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

// The signature of CUDA 11, which later versions also accept.
inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, cudaGraphNode_t*, char*,
                                        size_t) {
    return cudaGraphInstantiate(executable, graph, 0ull);
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
