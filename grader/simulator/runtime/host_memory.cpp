// cudaMalloc, cudaMemcpy, cudaMemset and related calls.
//
// Every byte that a call names must lie in one allocation of device memory or in a __device__ variable. Otherwise the
// call fails and a finding says why.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "arena.h"
#include "block_order.h"
#include "captures.h"
#include "cuda_runtime_api.h"
#include "given_stream.h"
#include "host_memory.h"
#include "output.h"
#include "submission_sandbox/sandbox.h"
#include "program.h"
#include "refuse.h"
#include "streams.h"
#include "thread.h"

#define CALLER __builtin_return_address(0)

namespace sim {

namespace {

using events::MemoryKind;

constexpr size_t pitch_multiple = 512;
constexpr const char* not_allocated = "the pointer was not allocated, or was freed already";

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

cudaError_t no_room(const char* call, size_t bytes, const void* caller) {
    char why[160];
    snprintf(why, sizeof why, "there is no room for %zu MiB: the simulated device has %zu MiB, of which %zu are free",
             (bytes >> 20) + 1, arena::total_bytes() >> 20, arena::free_bytes() >> 20);
    return refuse(call, cudaErrorMemoryAllocation, why, caller);
}

// Finds the variable that an API argument named `symbol` refers to.
bool find_symbol(const void* symbol, GlobalVariable* found) {
    return find_host_name(symbol, found) || find_global(symbol, found);
}

// Returns why a pointer is not device memory.
const char* not_on_device(const void* pointer, const char* otherwise) {
    GlobalVariable variable;
    if (!find_host_name(pointer, &variable)) return otherwise;
    return "in host code, the name of a __device__ or __constant__ variable is not its device address: use "
           "cudaMemcpyToSymbol and cudaMemcpyFromSymbol, or the address from cudaGetSymbolAddress";
}

// Returns the error in a copy's source or destination, or null.
const char* wrong_side(const void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
    bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    // With cudaMemcpyDefault the pointers determine the direction.
    if (kind == cudaMemcpyDefault) {
        to_device = in_arena(to);
        from_device = in_arena(from);
    }
    if (to_device && !is_device(to, bytes))
        return not_on_device(to, "the destination is not device memory of that many bytes");
    if (from_device && !is_device(from, bytes))
        return not_on_device(from, "the source is not device memory of that many bytes");
    if (!to || !from) return "a null pointer";
    return nullptr;
}

// Returns whether the call guarantees that the copy is complete when it returns. A call without Async does, unless both
// sides are on the device. Pinned memory is in the arena, too, so is_device() is true for it. Therefore a copy with the
// direction host to device or device to host also waits. A call with Async may wait if host memory is not pinned, but a
// program must not rely on that.
bool host_waits(const Rows& rows, cudaMemcpyKind kind, bool async) {
    bool from_device = is_device(rows.from, 1), to_device = is_device(rows.to, 1);
    if (async) return !from_device && !to_device;
    return !(from_device && to_device) || kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToHost;
}

Rows one_row(void* to, const void* from, size_t bytes, int value = 0) {
    return {to, bytes, from, bytes, bytes, 1, value};
}

}  // namespace

cudaError_t allocate_memory(const char* call, MemoryKind kind, void** pointer, size_t bytes, const void* caller) {
    if (!pointer) return refuse(call, cudaErrorInvalidValue, "the address of the pointer is null", caller);
    *pointer = nullptr;
    if (current_fault()) return fault();
    if (cudaError_t error = captures::forbids_unsafe(call)) return error;
    if (bytes == 0) return cudaSuccess;
    bool of_host = kind == MemoryKind::managed || kind == MemoryKind::pinned_host;
    char* base = arena::allocate(bytes, 0, of_host ? arena::Home::host : arena::Home::device);
    if (!base) {
        // With CUDA, an allocation of host memory might succeed. So report that the simulator, not the program, is at
        // fault.
        if (of_host) program_wants_too_much(call, caller);
        return no_room(call, bytes, caller);
    }
    *pointer = base;
    events::allocation({kind, base, bytes, nullptr, nullptr, 0, nullptr, caller});
    return cudaSuccess;
}

cudaError_t release_memory(const char* call, void* pointer, const void* caller) {
    DeviceLock lock;
    if (current_fault()) return fault();
    if (!pointer) return cudaSuccess;
    if (cudaError_t error = captures::forbids_unsafe(call)) return error;
    streams::host_waited_for_all();
    size_t bytes;
    if (!arena::release(pointer, &bytes)) return refuse(call, cudaErrorInvalidValue, not_allocated, caller);
    events::release(pointer, caller);
    return cudaSuccess;
}

cudaError_t copy_rows(const char* call, const Rows& rows, cudaMemcpyKind kind, cudaStream_t stream, bool async,
                      const void* caller) {
    DeviceLock lock;
    if (current_fault()) return fault();
    if (rows.width == 0 || rows.height == 0) return cudaSuccess;
    if (rows.width > rows.to_pitch || rows.width > rows.from_pitch) {
        return refuse(call, cudaErrorInvalidPitchValue, "the width exceeds a pitch: rows would overlap", caller);
    }
    if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) {
        return refuse(call, cudaErrorInvalidMemcpyDirection, "invalid copy direction", caller);
    }
    Operation operation = {OperationKind::copy, call, caller};
    operation.rows = rows;
    operation.direction = kind;
    cudaError_t error = streams::submit(operation, stream);
    CUstream_st* known = graphs::collecting() ? nullptr : streams::find(stream);
    if (!error && known && !known->capture && host_waits(rows, kind, async)) streams::host_waited_for(known->known);
    return error;
}

cudaError_t fill_rows(const char* call, const Rows& rows, cudaStream_t stream, const void* caller) {
    if (current_fault()) return fault();
    if (rows.width == 0 || rows.height == 0) return cudaSuccess;
    if (rows.width > rows.to_pitch) {
        return refuse(call, cudaErrorInvalidPitchValue, "the width exceeds a pitch: rows would overlap", caller);
    }
    Operation operation = {OperationKind::fill, call, caller};
    operation.rows = rows;
    return streams::submit(operation, stream);
}

cudaError_t perform_copy(const Operation& operation) {
    const Rows& rows = operation.rows;
    show_output();
    for (size_t row = 0; row < rows.height; ++row) {
        char* to = static_cast<char*>(rows.to) + row * rows.to_pitch;
        const char* from = static_cast<const char*>(rows.from) + row * rows.from_pitch;
        const char* wrong = wrong_side(to, from, rows.width, operation.direction);
        if (wrong) return refuse(operation.call, cudaErrorInvalidValue, wrong, operation.caller);
        if (!is_device(to, rows.width)) sandbox::copies_to(to, rows.width, operation.caller);
        if (is_device(from, rows.width)) events::host_read(from, rows.width);
        events::host_copy(to, from, rows.width);
        memmove(to, from, rows.width);
        if (is_device(to, rows.width))
            events::host_write(to, rows.width);
        else
            events::copied_to_host(to, rows.width);
    }
    return cudaSuccess;
}

cudaError_t perform_fill(const Operation& operation) {
    const Rows& rows = operation.rows;
    for (size_t row = 0; row < rows.height; ++row) {
        char* to = static_cast<char*>(rows.to) + row * rows.to_pitch;
        if (!is_device(to, rows.width)) {
            const char* why = not_on_device(to, "the pointer is not device memory of that many bytes");
            return refuse(operation.call, cudaErrorInvalidValue, why, operation.caller);
        }
        events::host_fill(to, rows.width);
        if (rows.element == 1)
            memset(to, rows.value, rows.width);
        else
            for (size_t i = 0; i < rows.width; i += rows.element) memcpy(to + i, &rows.value, rows.element);
        events::host_write(to, rows.width);
    }
    return cudaSuccess;
}

cudaError_t perform_allocation(const Operation& operation) {
    if (operation.pointer) sandbox::result(operation.pointer);
    return allocate_memory(operation.call, MemoryKind::async, operation.pointer, operation.rows.width,
                           operation.caller);
}

// Frees memory in stream order: all accesses by other streams must be ordered before this operation.
cudaError_t perform_release(const Operation& operation) {
    size_t bytes;
    if (!arena::find(operation.rows.to, &bytes)) {
        return refuse(operation.call, cudaErrorInvalidValue, not_allocated, operation.caller);
    }
    events::release(operation.rows.to, operation.caller);
    arena::release(operation.rows.to, &bytes);
    return cudaSuccess;
}

}  // namespace sim

using namespace sim;

namespace {

constexpr char not_a_variable[] = "the symbol is not a __device__ or __constant__ variable";

// Copies between `other` and the bytes at an offset in a device variable. `stores`: the copy is to the variable.
cudaError_t copy_part(const char* call, const void* symbol, size_t offset, bool stores, const void* other, size_t bytes,
                      cudaMemcpyKind kind, cudaStream_t stream, bool async, const void* caller) {
    GlobalVariable variable;
    if (!find_symbol(symbol, &variable)) return refuse(call, cudaErrorInvalidSymbol, not_a_variable, caller);
    if (offset > variable.bytes || bytes > variable.bytes - offset)
        return refuse(call, cudaErrorInvalidValue, "the byte count exceeds the variable", caller);
    char* part = variable.base + offset;
    Rows rows = stores ? one_row(part, other, bytes) : one_row(const_cast<void*>(other), part, bytes);
    return copy_rows(call, rows, kind, stream, async, caller);
}

cudaError_t allocate_in_order(const char* call, void** pointer, size_t bytes, cudaStream_t stream, const void* caller) {
    Operation operation = {OperationKind::allocation, call, caller};
    operation.pointer = pointer;
    operation.rows.width = bytes;
    return streams::submit(operation, stream);
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** pointer, size_t bytes) {
    if (pointer) sandbox::result(pointer);
    return allocate_memory("cudaMalloc", MemoryKind::device, pointer, bytes, CALLER);
}

cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t stream) {
    return allocate_in_order("cudaMallocAsync", pointer, bytes, stream, CALLER);
}

cudaError_t cudaMallocFromPoolAsync(void** pointer, size_t bytes, cudaMemPool_t, cudaStream_t stream) {
    return allocate_in_order("cudaMallocFromPoolAsync", pointer, bytes, stream, CALLER);
}

cudaError_t cudaMallocManaged(void** pointer, size_t bytes, unsigned int) {
    if (pointer) sandbox::result(pointer);
    return allocate_memory("cudaMallocManaged", MemoryKind::managed, pointer, bytes, CALLER);
}

// Pinned memory lies in the arena, because kernels may access it at the same address as the host.
cudaError_t cudaMallocHost(void** pointer, size_t bytes) {
    if (pointer) sandbox::result(pointer);
    return allocate_memory("cudaMallocHost", MemoryKind::pinned_host, pointer, bytes, CALLER);
}

cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned int) {
    if (pointer) sandbox::result(pointer);
    return allocate_memory("cudaHostAlloc", MemoryKind::pinned_host, pointer, bytes, CALLER);
}

cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
    if (pointer) sandbox::result(pointer);
    *sandbox::result(pitch) = (width + pitch_multiple - 1) / pitch_multiple * pitch_multiple;
    return allocate_memory("cudaMallocPitch", MemoryKind::device, pointer, *pitch * height, CALLER);
}

cudaError_t cudaGetSymbolAddress(void** address, const void* symbol) {
    GlobalVariable variable;
    bool known = find_symbol(symbol, &variable);
    *sandbox::result(address) = known ? variable.base : nullptr;
    return known ? cudaSuccess : refuse("cudaGetSymbolAddress", cudaErrorInvalidSymbol, not_a_variable, CALLER);
}

cudaError_t cudaGetSymbolSize(size_t* bytes, const void* symbol) {
    GlobalVariable variable;
    if (!find_symbol(symbol, &variable))
        return refuse("cudaGetSymbolSize", cudaErrorInvalidSymbol, not_a_variable, CALLER);
    *sandbox::result(bytes) = variable.bytes;
    return cudaSuccess;
}

cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, size_t bytes, size_t offset, cudaMemcpyKind kind) {
    return copy_part("cudaMemcpyToSymbol", symbol, offset, true, from, bytes, kind, nullptr, false, CALLER);
}

cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* from, size_t bytes, size_t offset,
                                    cudaMemcpyKind kind, cudaStream_t stream) {
    return copy_part("cudaMemcpyToSymbolAsync", symbol, offset, true, from, bytes, kind, stream, true, CALLER);
}

cudaError_t cudaMemcpyFromSymbol(void* to, const void* symbol, size_t bytes, size_t offset, cudaMemcpyKind kind) {
    return copy_part("cudaMemcpyFromSymbol", symbol, offset, false, to, bytes, kind, nullptr, false, CALLER);
}

cudaError_t cudaMemcpyFromSymbolAsync(void* to, const void* symbol, size_t bytes, size_t offset, cudaMemcpyKind kind,
                                      cudaStream_t stream) {
    return copy_part("cudaMemcpyFromSymbolAsync", symbol, offset, false, to, bytes, kind, stream, true, CALLER);
}

cudaError_t cudaFree(void* pointer) { return release_memory("cudaFree", pointer, CALLER); }

cudaError_t cudaFreeHost(void* pointer) { return release_memory("cudaFreeHost", pointer, CALLER); }

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
    if (!pointer) return cudaSuccess;
    Operation operation = {OperationKind::release, "cudaFreeAsync", CALLER};
    operation.rows.to = pointer;
    return streams::submit(operation, stream);
}

// A copy or a fill, and its asynchronous form, which takes a stream as well.
#define COPY(NAME, ROWS, ...)                                                                      \
    cudaError_t NAME(__VA_ARGS__) { return copy_rows(#NAME, ROWS, kind, nullptr, false, CALLER); } \
    cudaError_t NAME##Async(__VA_ARGS__, cudaStream_t stream) {                                    \
        check_stream(#NAME "Async", stream, CALLER);                                               \
        return copy_rows(#NAME "Async", ROWS, kind, stream, true, CALLER);                         \
    }
#define FILL(NAME, ROWS, ...)                                                         \
    cudaError_t NAME(__VA_ARGS__) { return fill_rows(#NAME, ROWS, nullptr, CALLER); } \
    cudaError_t NAME##Async(__VA_ARGS__, cudaStream_t stream) {                       \
        check_stream(#NAME "Async", stream, CALLER);                                  \
        return fill_rows(#NAME "Async", ROWS, stream, CALLER);                        \
    }
COPY(cudaMemcpy, one_row(to, from, bytes), void* to, const void* from, size_t bytes, cudaMemcpyKind kind)
COPY(cudaMemcpy2D, (Rows{to, to_pitch, from, from_pitch, width, height, 0}), void* to, size_t to_pitch,
     const void* from, size_t from_pitch, size_t width, size_t height, cudaMemcpyKind kind)
FILL(cudaMemset, one_row(pointer, nullptr, bytes, value), void* pointer, int value, size_t bytes)
FILL(cudaMemset2D, (Rows{pointer, pitch, nullptr, 0, width, height, value}), void* pointer, size_t pitch, int value,
     size_t width, size_t height)

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
    *sandbox::result(free_bytes) = arena::free_bytes();
    *sandbox::result(total_bytes) = arena::total_bytes();
    return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
    bool device = is_device(pointer, 1);
    sandbox::result(attributes)->type = device ? cudaMemoryTypeDevice : cudaMemoryTypeUnregistered;
    attributes->device = device ? 0 : -2;
    attributes->devicePointer = device ? const_cast<void*>(pointer) : nullptr;
    attributes->hostPointer = device ? nullptr : const_cast<void*>(pointer);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int) {
    *sandbox::result(pool) = nullptr;
    return cudaSuccess;
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, size_t) { return cudaSuccess; }

}  // extern "C"
