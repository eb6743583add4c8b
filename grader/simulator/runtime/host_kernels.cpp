// Kernel data by address: attributes, occupancy, and launches through a pointer.
#include <stdio.h>
#include <string.h>

#include "cuda_runtime_api.h"
#include "kernels.h"
#include "launch.h"
#include "limits.h"
#include "registry.h"
#include "submission_sandbox/sandbox.h"
#include "refuse.h"
#include "sim/launch.h"
#include "thread.h"

namespace sim {

namespace {

struct KernelRecord {
    const void* kernel;
    size_t dynamic_limit;  // bytes of dynamic shared memory; 0: not set
    size_t static_shared;
    bool non_portable_cluster;
};

pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
Registry<KernelRecord> records;

KernelRecord* find(const void* kernel) {
    return records.find([=](const KernelRecord& one) { return one.kernel == kernel; });
}

// Returns the record of a kernel, or null if there is none and none can be created.
KernelRecord* find_or_add(const void* kernel) {
    KernelRecord* found = find(kernel);
    return found ? found : records.add({kernel, 0, 0, false});
}

KernelRecord known_about(const void* kernel) {
    MutexLock guard(mutex);
    KernelRecord* record = kernel ? find(kernel) : nullptr;
    return record ? *record : KernelRecord{kernel, 0, 0, false};
}

}  // namespace

size_t requested_shared_limit(const void* kernel) {
    MutexLock guard(mutex);
    size_t limit = 0;
    for (const KernelRecord& record : records) {
        bool counts = kernel ? record.kernel == kernel : true;
        if (counts && record.dynamic_limit > limit) limit = record.dynamic_limit;
    }
    return limit;
}

size_t shared_limit_of(const void* kernel) {
    size_t limit = requested_shared_limit(kernel);
    return limit ? limit : limits::shared_without_attribute;
}

size_t static_shared_of(const void* kernel) { return known_about(kernel).static_shared; }

bool non_portable_cluster_allowed(const void* kernel) { return known_about(kernel).non_portable_cluster; }

void remember_static_shared(const void* kernel, size_t bytes) {
    if (!kernel || bytes == 0) return;
    MutexLock guard(mutex);
    if (KernelRecord* record = find_or_add(kernel)) record->static_shared = bytes;
}

void forget_attributes() {
    MutexLock guard(mutex);
    records.count = 0;
}

namespace {

int blocks_that_fit(const void* kernel, int threads, size_t dynamic_shared_bytes) {
    if (dynamic_shared_bytes > shared_limit_of(kernel)) return 0;
    return static_cast<int>(
        limits::blocks_per_sm(static_cast<unsigned>(threads), dynamic_shared_bytes + static_shared_of(kernel)));
}

LaunchConfig config_of(const void* kernel, const cudaLaunchConfig_t& wanted) {
    LaunchConfig config(wanted.sim_gridDim, wanted.sim_blockDim, wanted.dynamicSmemBytes, wanted.stream);
    config.of(kernel).attributes(wanted.attrs, wanted.numAttrs);
    if (!config.cluster.x) config.cluster = cluster_dimensions_of(kernel);
    if (!config.cluster.x) config.cluster = dim3(1, 1, 1);
    return config;
}

}  // namespace

cudaError_t best_block_size(int* grid, int* block, const void* kernel, size_t dynamic_shared_bytes, int limit) {
    int largest = limit > 0 && limit < static_cast<int>(limits::block_threads) ? limit : limits::block_threads;
    int best_threads = 0;
    *sandbox::result(block) = *sandbox::result(grid) = 0;
    for (int threads = largest; threads > 0; threads -= threads % 32 ? threads % 32 : 32) {
        int blocks = blocks_that_fit(kernel, threads, dynamic_shared_bytes);
        if (blocks * threads <= best_threads) continue;
        best_threads = blocks * threads;
        *block = threads;
        *grid = blocks * static_cast<int>(limits::sms);
    }
    return cudaSuccess;
}

cudaError_t launch_registered(const char* name, const LaunchConfig& config, void** arguments) {
    const void* kernel = config.kernel;
    RegisteredKernel registered;
    if (!find_kernel(kernel, &registered)) {
        return refuse(name, cudaErrorInvalidDeviceFunction, "unknown kernel address: pass the kernel without a cast");
    }
    registered.launcher(config, registered.name, arguments);
    return static_cast<cudaError_t>(peek_last_error());
}

}  // namespace sim

using namespace sim;

extern "C" {

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
    const char* call = "cudaFuncSetAttribute";
    if (!kernel) return refuse(call, cudaErrorInvalidDeviceFunction, "the address of the kernel is null");
    if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout) {
        if (value < -1 || value > 100)
            return refuse(call, cudaErrorInvalidValue, "the carveout must be -1, or a percentage from 0 to 100");
        return cudaSuccess;
    }
    bool of_clusters = attribute == cudaFuncAttributeNonPortableClusterSizeAllowed;
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize && !of_clusters) {
        return refuse(call, cudaErrorInvalidValue, "the simulator does not support this attribute");
    }
    MutexLock guard(mutex);
    KernelRecord* record = find_or_add(kernel);
    if (!record) return refuse(call, cudaErrorMemoryAllocation, "no memory");
    if (of_clusters) {
        record->non_portable_cluster = value != 0;
        return cudaSuccess;
    }
    if (value < 0 || static_cast<size_t>(value) + record->static_shared > limits::shared_with_attribute) {
        char why[80];
        snprintf(why, sizeof why, "a block can use at most %u KB of shared memory in total", simulated.block_shared);
        return refuse(call, cudaErrorInvalidValue, why);
    }
    record->dynamic_limit = static_cast<size_t>(value);
    return cudaSuccess;
}

cudaError_t cudaFuncSetCacheConfig(const void*, cudaFuncCache) { return cudaSuccess; }

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* kernel) {
    cudaFuncAttributes a;
    memset(&a, 0, sizeof a);
    a.sharedSizeBytes = static_shared_of(kernel);
    a.maxThreadsPerBlock = limits::block_threads;
    a.maxDynamicSharedSizeBytes = static_cast<int>(shared_limit_of(kernel));
    a.ptxVersion = a.binaryVersion = static_cast<int>(compute_capability());
    *sandbox::result(attributes) = a;
    return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* kernel, int threads,
                                                          size_t dynamic_shared_bytes) {
    *sandbox::result(blocks) = 0;
    if (threads <= 0)
        return refuse("cudaOccupancyMaxActiveBlocksPerMultiprocessor", cudaErrorInvalidValue,
                      "the block has no threads");
    *blocks = blocks_that_fit(kernel, threads, dynamic_shared_bytes);
    return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* kernel, int threads,
                                                                   size_t dynamic_shared_bytes, unsigned int) {
    return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, kernel, threads, dynamic_shared_bytes);
}

cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, const void* kernel, const cudaLaunchConfig_t* wanted) {
    LaunchConfig config = config_of(kernel, *wanted);
    *sandbox::result(clusters) = 0;
    limits::note_question(__builtin_return_address(0));
    if (Refusal refusal = validate(config); refusal.error)
        return refuse("cudaOccupancyMaxActiveClusters", cudaError_t(refusal.error), refusal.why);
    auto blocks = static_cast<unsigned>(resident_blocks(config));
    unsigned size = config.cluster.x * config.cluster.y * config.cluster.z;
    // If a block fits, one cluster counts as resident: the simulator runs it even if the device's few SMs could not.
    *clusters = static_cast<int>(blocks == 0 ? 0 : blocks < size ? 1 : blocks / size);
    return cudaSuccess;
}

cudaError_t cudaOccupancyMaxPotentialClusterSize(int* blocks, const void* kernel, const cudaLaunchConfig_t*) {
    *sandbox::result(blocks) =
        static_cast<int>(non_portable_cluster_allowed(kernel) ? max_cluster_blocks : limits::portable_cluster);
    return cudaSuccess;
}

cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** arguments, size_t dynamic_shared_bytes,
                             cudaStream_t stream) {
    LaunchConfig config(grid, block, dynamic_shared_bytes, stream);
    return launch_registered("cudaLaunchKernel", config.of(kernel), arguments);
}

cudaError_t cudaLaunchCooperativeKernel(const void* kernel, dim3 grid, dim3 block, void** arguments,
                                        size_t dynamic_shared_bytes, cudaStream_t stream) {
    LaunchConfig config(grid, block, dynamic_shared_bytes, stream);
    config.of(kernel).cooperative = true;
    return launch_registered("cudaLaunchCooperativeKernel", config, arguments);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* wanted, const void* kernel, void** arguments) {
    LaunchConfig config(wanted->sim_gridDim, wanted->sim_blockDim, wanted->dynamicSmemBytes, wanted->stream);
    return launch_registered("cudaLaunchKernelExC", config.of(kernel).attributes(wanted->attrs, wanted->numAttrs),
                             arguments);
}

}  // extern "C"
