// new in device code: the front end writes new (::sim::heap) T there. Such an operator new may give null, so what it makes is
// constructed only where there is memory, as on a GPU. delete is the language's own: the linker leads it to the simulator.
#pragma once

#include <stddef.h>

namespace sim {

struct Heap {};
constexpr Heap heap{};

#pragma GCC visibility push(default)
// Of the device in a kernel, else of the host.
void* heap_allocate(size_t bytes) noexcept;
#pragma GCC visibility pop

}  // namespace sim

__attribute__((always_inline)) inline void* operator new(size_t bytes, const ::sim::Heap&) noexcept {
    return ::sim::heap_allocate(bytes);
}
__attribute__((always_inline)) inline void* operator new[](size_t bytes, const ::sim::Heap&) noexcept {
    return ::sim::heap_allocate(bytes);
}
