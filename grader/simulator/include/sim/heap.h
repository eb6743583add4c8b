// `new` in device code. The front end replaces `new T` by `new (::sim::heap) T`. As on a GPU, this operator new may
// return null, and then no object is constructed. `delete` is not replaced in the source: the linker redirects it to
// the simulator.
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
