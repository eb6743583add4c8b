// The device heap: malloc, free, new and delete in kernels. Allocation returns null when the heap is full, as on a GPU.
#include "device_heap.h"

#include <stdlib.h>

#include <new>

#include "api.h"
#include "arena.h"
#include "block_order.h"
#include "events.h"
#include "submission_sandbox/sandbox.h"
#include "sim/heap.h"
#include "thread.h"

namespace sim {

namespace {

constexpr const char* what = "its threads allocate memory";

void* take(size_t bytes, const void* caller) {
    in_block_order(what);
    char* base = arena::allocate(bytes, 0, arena::Home::heap);
    if (base) events::allocation({events::MemoryKind::heap, base, bytes, nullptr, nullptr, 0, nullptr, caller});
    return base;
}

}  // namespace

bool freed_by_kernel(void* pointer, const void* caller) {
    ArenaRange arena = arena_range();
    auto* byte = static_cast<const char*>(pointer);
    if (!current_thread || byte < arena.base || byte >= arena.base + arena.bytes) return false;
    in_block_order(what);
    size_t bytes;
    if (arena::release(pointer, &bytes, true))
        events::release(pointer, caller);
    else
        events::bad_free(pointer, caller);
    return true;
}

void* heap_allocate(size_t bytes) noexcept {
    if (current_thread) return take(bytes, __builtin_return_address(0));
    return sandbox::confined ? sandbox::allocate(bytes) : ::operator new(bytes, std::nothrow);
}

}  // namespace sim

using namespace sim;

extern "C" {

// malloc and free in a kernel file: see sim/c_library.h.
SIM_EXPORT void* sim_malloc(size_t bytes) {
    if (current_thread) return take(bytes, __builtin_return_address(0));
    return sandbox::confined ? sandbox::allocate(bytes) : malloc(bytes);
}

SIM_EXPORT void sim_free(void* pointer) {
    if (freed_by_kernel(pointer, __builtin_return_address(0))) return;
    // Confined host code may free only what sandbox::allocate returned.
    if (!sandbox::confined) free(pointer);
    sandbox::release(pointer);
}

}  // extern "C"
