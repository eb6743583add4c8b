// cudaMalloc, cudaMemcpy, cudaMemset and their relatives.
//
// A pointer to device memory must lie in an allocation, or in a __device__ variable, with all the bytes that a call
// names; otherwise the call fails and the findings say why.
#include <stdint.h>
#include <string.h>

#include "arena.h"
#include "cuda_runtime_api.h"
#include "output.h"
#include "refuse.h"
#include "thread.h"

namespace sim {

namespace {

using events::MemoryKind;

constexpr size_t pitch_multiple = 512;

cudaError_t fault() { return static_cast<cudaError_t>(current_fault()); }

bool in_arena(const void* pointer) {
    ArenaRange arena = arena_range();
    const char* byte = static_cast<const char*>(pointer);
    return arena.base && byte >= arena.base && byte < arena.base + arena.bytes;
}

bool in_global(const void* pointer, size_t bytes) {
    GlobalVariable variable;
    return find_global(pointer, &variable) &&
           static_cast<const char*>(pointer) + bytes <= variable.base + variable.bytes;
}

bool is_device(const void* pointer, size_t bytes) {
    return in_arena(pointer) ? arena::contains(pointer, bytes) : in_global(pointer, bytes);
}

cudaError_t allocate(const char* call, MemoryKind kind, void** pointer, size_t bytes, const void* caller) {
    if (!pointer) return refuse(call, cudaErrorInvalidValue, "no place to put the pointer");
    *pointer = nullptr;
    if (current_fault()) return fault();
    if (bytes == 0) return cudaSuccess;
    char* base = arena::allocate(bytes, 0);
    if (!base) return refuse(call, cudaErrorMemoryAllocation, "the simulated device has no room for so many bytes");
    *pointer = base;
    events::allocation({kind, base, bytes, nullptr, nullptr, 0, nullptr, caller});
    return cudaSuccess;
}

cudaError_t release(const char* call, void* pointer, const void* caller) {
    if (current_fault()) return fault();
    if (!pointer) return cudaSuccess;
    size_t bytes;
    if (!arena::release(pointer, &bytes)) {
        return refuse(call, cudaErrorInvalidValue, "the pointer was not allocated, or has been freed already");
    }
    events::release(pointer, bytes, caller);
    return cudaSuccess;
}

// What is wrong with a copy's two sides; null if nothing is.
const char* wrong_side(const void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
    bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    // With cudaMemcpyDefault the pointers say what they are.
    if (kind == cudaMemcpyDefault) {
        to_device = in_arena(to);
        from_device = in_arena(from);
    }
    if (to_device && !is_device(to, bytes)) return "the destination is not device memory of that many bytes";
    if (from_device && !is_device(from, bytes)) return "the source is not device memory of that many bytes";
    if (!to || !from) return "a null pointer";
    return nullptr;
}

cudaError_t copy(const char* call, void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
    if (current_fault()) return fault();
    if (bytes == 0) return cudaSuccess;
    if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) {
        return refuse(call, cudaErrorInvalidMemcpyDirection, "no such direction");
    }
    const char* wrong = wrong_side(to, from, bytes, kind);
    if (wrong) return refuse(call, cudaErrorInvalidValue, wrong);
    show_output();
    events::host_copy(to, from, bytes);
    memmove(to, from, bytes);
    if (is_device(to, bytes)) events::host_write(to, bytes);
    return cudaSuccess;
}

cudaError_t fill(const char* call, void* pointer, int value, size_t bytes) {
    if (current_fault()) return fault();
    if (bytes == 0) return cudaSuccess;
    if (!is_device(pointer, bytes)) {
        return refuse(call, cudaErrorInvalidValue, "the pointer is not device memory of that many bytes");
    }
    memset(pointer, value, bytes);
    events::host_write(pointer, bytes);
    return cudaSuccess;
}

}  // namespace

cudaError_t allocate_device(void** pointer, size_t bytes) {
    return allocate("cudaMalloc", MemoryKind::device, pointer, bytes, __builtin_return_address(0));
}

cudaError_t allocate_async(void** pointer, size_t bytes) {
    return allocate("cudaMallocAsync", MemoryKind::async, pointer, bytes, __builtin_return_address(0));
}

cudaError_t allocate_managed(void** pointer, size_t bytes) {
    return allocate("cudaMallocManaged", MemoryKind::managed, pointer, bytes, __builtin_return_address(0));
}

// In the arena too, because kernels may read it: pinned memory has one address for host and device.
cudaError_t allocate_host(void** pointer, size_t bytes) {
    return allocate("cudaMallocHost", MemoryKind::pinned_host, pointer, bytes, __builtin_return_address(0));
}

cudaError_t allocate_pitched(void** pointer, size_t* pitch, size_t width, size_t height) {
    *pitch = (width + pitch_multiple - 1) / pitch_multiple * pitch_multiple;
    return allocate("cudaMallocPitch", MemoryKind::device, pointer, *pitch * height, __builtin_return_address(0));
}

cudaError_t symbol_address(void** address, const void* symbol) {
    *address = const_cast<void*>(symbol);
    GlobalVariable variable;
    if (find_global(symbol, &variable)) return cudaSuccess;
    return refuse("cudaGetSymbolAddress", cudaErrorInvalidSymbol, "this is no __device__ or __constant__ variable");
}

cudaError_t symbol_size(size_t* bytes, const void* symbol) {
    GlobalVariable variable;
    if (!find_global(symbol, &variable)) {
        return refuse("cudaGetSymbolSize", cudaErrorInvalidSymbol, "this is no __device__ or __constant__ variable");
    }
    *bytes = variable.bytes;
    return cudaSuccess;
}

cudaError_t copy_to_symbol(const void* symbol, const void* from, size_t bytes, size_t offset, cudaMemcpyKind kind) {
    GlobalVariable variable;
    const char* call = "cudaMemcpyToSymbol";
    if (!find_global(symbol, &variable)) {
        return refuse(call, cudaErrorInvalidSymbol, "this is no __device__ or __constant__ variable");
    }
    if (offset > variable.bytes || bytes > variable.bytes - offset) {
        return refuse(call, cudaErrorInvalidValue, "more bytes than the variable has");
    }
    return copy(call, variable.base + offset, from, bytes, kind);
}

cudaError_t copy_from_symbol(void* to, const void* symbol, size_t bytes, size_t offset, cudaMemcpyKind kind) {
    GlobalVariable variable;
    const char* call = "cudaMemcpyFromSymbol";
    if (!find_global(symbol, &variable)) {
        return refuse(call, cudaErrorInvalidSymbol, "this is no __device__ or __constant__ variable");
    }
    if (offset > variable.bytes || bytes > variable.bytes - offset) {
        return refuse(call, cudaErrorInvalidValue, "more bytes than the variable has");
    }
    return copy(call, to, variable.base + offset, bytes, kind);
}

}  // namespace sim

using namespace sim;

extern "C" {

cudaError_t cudaFree(void* pointer) { return release("cudaFree", pointer, __builtin_return_address(0)); }

cudaError_t cudaFreeHost(void* pointer) { return release("cudaFreeHost", pointer, __builtin_return_address(0)); }

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t) {
    return release("cudaFreeAsync", pointer, __builtin_return_address(0));
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
    return copy("cudaMemcpy", to, from, bytes, kind);
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t) {
    return copy("cudaMemcpyAsync", to, from, bytes, kind);
}

cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height,
                         cudaMemcpyKind kind) {
    if (width > to_pitch || width > from_pitch) {
        return refuse("cudaMemcpy2D", cudaErrorInvalidPitchValue, "a row is wider than its pitch");
    }
    for (size_t row = 0; row < height; ++row) {
        cudaError_t error = copy("cudaMemcpy2D", static_cast<char*>(to) + row * to_pitch,
                                 static_cast<const char*>(from) + row * from_pitch, width, kind);
        if (error) return error;
    }
    return cudaSuccess;
}

cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width,
                              size_t height, cudaMemcpyKind kind, cudaStream_t) {
    return cudaMemcpy2D(to, to_pitch, from, from_pitch, width, height, kind);
}

cudaError_t cudaMemset(void* pointer, int value, size_t bytes) { return fill("cudaMemset", pointer, value, bytes); }

cudaError_t cudaMemsetAsync(void* pointer, int value, size_t bytes, cudaStream_t) {
    return fill("cudaMemsetAsync", pointer, value, bytes);
}

cudaError_t cudaMemset2D(void* pointer, size_t pitch, int value, size_t width, size_t height) {
    if (width > pitch) return refuse("cudaMemset2D", cudaErrorInvalidPitchValue, "a row is wider than its pitch");
    for (size_t row = 0; row < height; ++row) {
        cudaError_t error = fill("cudaMemset2D", static_cast<char*>(pointer) + row * pitch, value, width);
        if (error) return error;
    }
    return cudaSuccess;
}

cudaError_t cudaMemset2DAsync(void* pointer, size_t pitch, int value, size_t width, size_t height, cudaStream_t) {
    return cudaMemset2D(pointer, pitch, value, width, height);
}

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
    *free_bytes = arena::free_bytes();
    *total_bytes = arena::total_bytes();
    return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
    bool device = is_device(pointer, 1);
    attributes->type = device ? cudaMemoryTypeDevice : cudaMemoryTypeUnregistered;
    attributes->device = device ? 0 : -2;
    attributes->devicePointer = device ? const_cast<void*>(pointer) : nullptr;
    attributes->hostPointer = device ? nullptr : const_cast<void*>(pointer);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int) {
    *pool = nullptr;
    return cudaSuccess;
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t) { return cudaSuccess; }

}  // extern "C"
