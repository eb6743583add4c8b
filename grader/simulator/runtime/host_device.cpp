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
#define SIM_ATTRIBUTE(name, number, member, value) \
    case cudaDevAttr##name:                        \
        return static_cast<int>(value);
#include "sim/device_attributes.def"
#undef SIM_ATTRIBUTE
    }
    *known = false;
    return 0;
}

template <typename T, typename Value>
void set(T& member, Value value) {
    member = static_cast<T>(value);
}

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
#define SIM_ATTRIBUTE(name, number, member, value) set(p.member, value);
#include "sim/device_attributes.def"
#undef SIM_ATTRIBUTE
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
