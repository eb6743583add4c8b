// Kernel launches: the translation of `kernel<<<grid, block, bytes, stream>>>(arguments)`.
#pragma once

#include <stddef.h>

#include "driver_types.h"
#include "sim/dim.h"

#pragma GCC visibility push(default)
namespace sim {

struct LaunchConfig {
    dim3 grid;
    dim3 block;
    size_t dynamic_shared_bytes;
    cudaStream_t stream;
    const void* caller = nullptr;  // return address of the launch
    const void* kernel = nullptr;  // the kernel's address if it is known: used to find its cudaFuncSetAttribute
    bool cooperative = false;
    dim3 cluster = dim3(0, 0, 0);  // cluster shape in blocks; zeros: the kernel's __cluster_dims__, if any
    bool programmatic = false;     // the kernel may begin before the previous one in the stream has ended
    size_t parameter_bytes = 0;    // size of the object that holds the kernel's arguments

    LaunchConfig(dim3 grid_, dim3 block_, size_t dynamic_shared_bytes_ = 0, cudaStream_t stream_ = nullptr)
        : grid(grid_), block(block_), dynamic_shared_bytes(dynamic_shared_bytes_), stream(stream_) {}

    LaunchConfig& in_clusters(unsigned x, unsigned y = 1, unsigned z = 1) {
        cluster = dim3(x, y, z);
        return *this;
    }
    // Applies the launch attributes of cudaLaunchKernelEx.
    LaunchConfig& attributes(const cudaLaunchAttribute* list, unsigned count) {
        for (unsigned i = 0; i < count; ++i) {
            const cudaLaunchAttributeValue& value = list[i].val;
            if (list[i].id == cudaLaunchAttributeClusterDimension) {
                cluster = dim3(value.clusterDim.x, value.clusterDim.y, value.clusterDim.z);
            } else if (list[i].id == cudaLaunchAttributeCooperative) {
                cooperative = value.cooperative != 0;
            } else if (list[i].id == cudaLaunchAttributeProgrammaticStreamSerialization) {
                programmatic = value.programmaticStreamSerializationAllowed != 0;
            }
        }
        return *this;
    }
    LaunchConfig& of(const void* kernel_) {
        kernel = kernel_;
        return *this;
    }
};

// The work of one thread, with its arguments. `clone` and `destroy` are for a launch by a kernel, which runs after the
// launching thread has ended.
struct LaunchBody {
    void (*call)(void* context);
    void* context;
    void* (*clone)(const void* context);
    void (*destroy)(void* context);
};

// Runs the body once for each thread of the grid and returns when all blocks have ended. Sets the last CUDA error if
// the configuration is invalid or a thread faults.
void run_grid(const LaunchConfig& config, const char* name, const LaunchBody& body);

// The type of a launch argument that is written as NULL or 0. It converts to a pointer or a number, as the literal does
// in a function call.
struct Zero {
    template <typename T>
    constexpr operator T*() const {
        return nullptr;
    }
    template <typename T, typename = decltype(T(0) + 0.0)>
    constexpr operator T() const {
        return T(0);
    }
};

// Reads the first value for a loop around atomicCAS. The read is volatile, so that it does not race with atomic
// operations.
template <typename T>
inline __attribute__((always_inline)) T first_look(const T* address) {
    return *const_cast<const volatile T*>(address);
}

// A launch argument {}. It converts to the parameter's type.
struct Empty {
    template <typename T>
    constexpr operator T() const {
        return T{};
    }
};

// Inlined, so that findings about the launch name the learner's line.
template <typename Kernel, typename... Arguments>
__attribute__((always_inline)) inline void launch(const LaunchConfig& config, const char* name, Kernel kernel,
                                                  Arguments... arguments) {
    // Not instrumented: passing the arguments is not a memory access of the kernel.
    auto thread = [=]() __attribute__((no_sanitize("thread", "object-size"))) { kernel(arguments...); };
    using Thread = decltype(thread);
    LaunchBody body;
    body.call = [](void* context)
                    __attribute__((no_sanitize("thread", "object-size"))) { (*static_cast<Thread*>(context))(); };
    body.context = &thread;
    body.clone = [](const void* context) __attribute__((no_sanitize("thread", "object-size"))) -> void* {
        return new Thread(*static_cast<const Thread*>(context));
    };
    body.destroy = [](void* context) { delete static_cast<Thread*>(context); };
    LaunchConfig sized = config;
    sized.parameter_bytes = sizeof thread;
    run_grid(sized, name, body);
}

}  // namespace sim
#pragma GCC visibility pop
