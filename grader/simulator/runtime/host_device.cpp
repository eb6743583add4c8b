// The simulated device: its properties, limits and attributes.
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "arena.h"
#include "captures.h"
#include "cuda_runtime_api.h"
#include "limits.h"
#include "output.h"
#include "submission_sandbox/sandbox.h"
#include "refuse.h"
#include "settings.h"
#include "streams.h"

namespace {

using namespace sim;

// Properties follow an H200 where it matters; the name and the number of SMs differ.
constexpr int clock_kilohertz = 1980000;
constexpr int memory_clock_kilohertz = 3201000;
constexpr int memory_bus_bits = 6016;
constexpr int l2_bytes = 50 << 20;
constexpr int texture_alignment = 512;

unsigned sm = simulated.sm;

int attribute_value(cudaDeviceAttr attribute, bool* known) {
    *known = true;
    switch (attribute) {
        case cudaDevAttrMaxThreadsPerBlock:
            return limits::block_threads;
        case cudaDevAttrMaxBlockDimX:
            return limits::block_x;
        case cudaDevAttrMaxBlockDimY:
            return limits::block_y;
        case cudaDevAttrMaxBlockDimZ:
            return limits::block_z;
        case cudaDevAttrMaxGridDimX:
            return static_cast<int>(limits::grid_x);
        case cudaDevAttrMaxGridDimY:
            return static_cast<int>(limits::grid_y);
        case cudaDevAttrMaxGridDimZ:
            return static_cast<int>(limits::grid_z);
        case cudaDevAttrMaxSharedMemoryPerBlock:
            return static_cast<int>(limits::shared_without_attribute);
        case cudaDevAttrTotalConstantMemory:
            return static_cast<int>(limits::constant_memory);
        case cudaDevAttrWarpSize:
            return static_cast<int>(lanes_per_warp);
        case cudaDevAttrMaxRegistersPerBlock:
            return static_cast<int>(limits::registers);
        case cudaDevAttrClockRate:
            return clock_kilohertz;
        case cudaDevAttrMultiProcessorCount:
            return limits::sms;
        case cudaDevAttrMemoryClockRate:
            return memory_clock_kilohertz;
        case cudaDevAttrGlobalMemoryBusWidth:
            return memory_bus_bits;
        case cudaDevAttrL2CacheSize:
            return l2_bytes;
        case cudaDevAttrMaxThreadsPerMultiProcessor:
            return limits::sm_threads;
        case cudaDevAttrComputeCapabilityMajor:
            return static_cast<int>(compute_capability() / 10);
        case cudaDevAttrComputeCapabilityMinor:
            return static_cast<int>(compute_capability() % 10);
        case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
            return static_cast<int>(limits::sm_shared);
        case cudaDevAttrMaxRegistersPerMultiprocessor:
            return static_cast<int>(limits::registers);
        case cudaDevAttrCooperativeLaunch:
            return 1;
        case cudaDevAttrMaxSharedMemoryPerBlockOptin:
            return static_cast<int>(limits::shared_with_attribute);
        case cudaDevAttrMaxBlocksPerMultiprocessor:
            return limits::sm_blocks;
        case cudaDevAttrReservedSharedMemoryPerBlock:
            return static_cast<int>(limits::reserved_shared);
        case cudaDevAttrClusterLaunch:
            return simulated.cluster_blocks > 0;
        case cudaDevAttrMaxPitch:
            return static_cast<int>(limits::grid_x);
        case cudaDevAttrTextureAlignment:
            return texture_alignment;
        case cudaDevAttrSingleToDoublePrecisionPerfRatio:
            return 2;
        case cudaDevAttrGpuOverlap:
        case cudaDevAttrStreamPrioritiesSupported:
        case cudaDevAttrGlobalL1CacheSupported:
        case cudaDevAttrLocalL1CacheSupported:
        case cudaDevAttrHostRegisterSupported:
        case cudaDevAttrComputePreemptionSupported:
        case cudaDevAttrMemoryPoolsSupported:
        case cudaDevAttrCanMapHostMemory:
        case cudaDevAttrConcurrentKernels:
        case cudaDevAttrAsyncEngineCount:
        case cudaDevAttrUnifiedAddressing:
        case cudaDevAttrManagedMemory:
        case cudaDevAttrConcurrentManagedAccess:
            return 1;
        case cudaDevAttrKernelExecTimeout:
        case cudaDevAttrIntegrated:
        case cudaDevAttrComputeMode:
        case cudaDevAttrEccEnabled:
        case cudaDevAttrPageableMemoryAccess:
        case cudaDevAttrPageableMemoryAccessUsesHostPageTables:
        case cudaDevAttrDirectManagedMemAccessFromHost:
        case cudaDevAttrCanUseHostPointerForRegisteredMem:
        case cudaDevAttrHostNativeAtomicSupported:
        case cudaDevAttrIsMultiGpuBoard:
        case cudaDevAttrMultiGpuBoardGroupID:
        case cudaDevAttrTccDriver:
        case cudaDevAttrPciBusId:
        case cudaDevAttrPciDeviceId:
        case cudaDevAttrPciDomainId:
        case cudaDevAttrMaxPersistingL2CacheSize:
        case cudaDevAttrMaxAccessPolicyWindowSize:
            return 0;
    }
    *known = false;
    return 0;
}

int value_of(cudaDeviceAttr attribute) {
    bool known;
    return attribute_value(attribute, &known);
}

}  // namespace

namespace {
const void* libraries_that_asked[256];
unsigned askers = 0;
}  // namespace

bool limits::has_asked(const void* library) {
    for (unsigned i = 0; i < askers; ++i)
        if (libraries_that_asked[i] == library) return true;
    return false;
}

void limits::note_question(const void* caller) {
    Dl_info info = {};
    if (askers < 256 && dladdr(caller, &info) && !has_asked(info.dli_fbase))
        libraries_that_asked[askers++] = info.dli_fbase;
}

namespace sim {

void set_compute_capability(unsigned number) { sm = number; }
unsigned compute_capability() { return sm; }

}  // namespace sim

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
    *sandbox::result(count) = 1;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
    *sandbox::result(device) = 0;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
    if (device != 0) return refuse("cudaSetDevice", cudaErrorInvalidDevice, "the simulator has one device, number 0");
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
    limits::note_question(__builtin_return_address(0));
    if (device != 0) {
        return refuse("cudaGetDeviceProperties", cudaErrorInvalidDevice, "the simulator has one device, number 0");
    }
    cudaDeviceProp p;
    memset(&p, 0, sizeof p);
    snprintf(p.name, sizeof p.name, "Simulated GPU (compute capability %u.%u)", compute_capability() / 10,
             compute_capability() % 10);
    p.totalGlobalMem = arena::total_bytes();
    p.sharedMemPerBlock = limits::shared_without_attribute;
    p.regsPerBlock = static_cast<int>(limits::registers);
    p.warpSize = static_cast<int>(lanes_per_warp);
    p.memPitch = limits::grid_x;
    p.maxThreadsPerBlock = limits::block_threads;
    p.maxThreadsDim[0] = limits::block_x;
    p.maxThreadsDim[1] = limits::block_y;
    p.maxThreadsDim[2] = limits::block_z;
    p.maxGridSize[0] = static_cast<int>(limits::grid_x);
    p.maxGridSize[1] = static_cast<int>(limits::grid_y);
    p.maxGridSize[2] = static_cast<int>(limits::grid_z);
    p.clockRate = clock_kilohertz;
    p.totalConstMem = limits::constant_memory;
    p.major = value_of(cudaDevAttrComputeCapabilityMajor);
    p.minor = value_of(cudaDevAttrComputeCapabilityMinor);
    p.multiProcessorCount = limits::sms;
    p.canMapHostMemory = 1;
    p.concurrentKernels = 1;
    p.asyncEngineCount = 1;
    p.unifiedAddressing = 1;
    p.memoryClockRate = memory_clock_kilohertz;
    p.memoryBusWidth = memory_bus_bits;
    p.l2CacheSize = l2_bytes;
    p.maxThreadsPerMultiProcessor = limits::sm_threads;
    p.sharedMemPerMultiprocessor = limits::sm_shared;
    p.regsPerMultiprocessor = static_cast<int>(limits::registers);
    p.managedMemory = 1;
    p.concurrentManagedAccess = 1;
    p.cooperativeLaunch = 1;
    p.sharedMemPerBlockOptin = limits::shared_with_attribute;
    p.maxBlocksPerMultiProcessor = limits::sm_blocks;
    p.reservedSharedMemPerBlock = limits::reserved_shared;
    p.memoryPoolsSupported = 1;
    p.streamPrioritiesSupported = 1;
    p.textureAlignment = texture_alignment;
    p.hostRegisterSupported = 1;
    p.deviceOverlap = 1;
    p.singleToDoublePrecisionPerfRatio = 2;
    p.globalL1CacheSupported = 1;
    p.localL1CacheSupported = 1;
    p.clusterLaunch = simulated.cluster_blocks > 0;
    *sandbox::result(properties) = p;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
    if (attribute == cudaDevAttrMultiProcessorCount) limits::note_question(__builtin_return_address(0));
    bool known;
    *sandbox::result(value) = attribute_value(attribute, &known);
    if (device != 0)
        return refuse("cudaDeviceGetAttribute", cudaErrorInvalidDevice, "the simulator has one device, number 0");
    if (!known)
        return refuse("cudaDeviceGetAttribute", cudaErrorInvalidValue, "the simulator does not support this attribute");
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
    DeviceLock lock;
    const char* call = "cudaDeviceSynchronize";
    if (cudaError_t error = streams::forbids_host_function(call)) return error;
    if (cudaError_t error = captures::forbids_device(call)) return error;
    streams::host_waited_for_all();
    show_output();
    return static_cast<cudaError_t>(peek_last_error());
}

cudaError_t cudaDeviceReset() {
    streams::host_waited_for_all();
    show_output();
    forget_fault();
    return cudaSuccess;
}

cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
    // The simulator's own functions run on a fiber's stack too, so it never shrinks.
    if (limit == cudaLimitStackSize && value > stack_bytes()) settings.stack_bytes = value;
    if (limit == cudaLimitMallocHeapSize) arena::set_heap_bytes(value);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit) {
    *sandbox::result(value) = limit == cudaLimitStackSize        ? stack_bytes()
                              : limit == cudaLimitMallocHeapSize ? arena::heap_bytes()
                                                                 : limits::printf_buffer;
    return cudaSuccess;
}

cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) { return cudaSuccess; }

cudaError_t cudaRuntimeGetVersion(int* version) {
    *sandbox::result(version) = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) { return cudaRuntimeGetVersion(version); }

cudaError_t cudaSetDeviceFlags(unsigned int) { return cudaSuccess; }

}  // extern "C"
