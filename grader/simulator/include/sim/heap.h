// new in device code: the front end writes new (::sim::heap) T. This operator new may return null, and then nothing is
// constructed, as on a GPU. delete is the language's own: the linker redirects it to the simulator.
#pragma once

#include <stddef.h>

namespace sim {

struct Heap {};
constexpr Heap heap{};

#pragma GCC visibility push(default)
// Allocates from the device heap in a kernel, and from the host's heap in host code.
void* heap_allocate(size_t bytes) noexcept;
#pragma GCC visibility pop

}  // namespace sim

__attribute__((always_inline)) inline void* operator new(size_t bytes, const ::sim::Heap&) noexcept {
    return ::sim::heap_allocate(bytes);
}
__attribute__((always_inline)) inline void* operator new[](size_t bytes, const ::sim::Heap&) noexcept {
    return ::sim::heap_allocate(bytes);
}
