// Shared memory: static arrays and the dynamic buffer of the running block.
//
// Every static array has a slot. In a launch, the first thread that accesses the array assigns an offset in shared
// memory to the slot. All blocks of the launch use this offset. Red zones between arrays do not count as usage.
#pragma once

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)
namespace sim {

struct SharedSlot {
    size_t bytes;
    size_t alignment;
    uint64_t launch;  // the launch for which `offset` is valid
    size_t offset;    // bytes from the start of the block's shared memory
};

// Returns the running block's address of this array. Constant for a thread, so the compiler may reuse the result.
[[gnu::const]] void* shared_slot_address(SharedSlot* slot, const char* name, size_t alignment) noexcept;
[[gnu::const]] void* dynamic_shared_address() noexcept;
[[gnu::const]] size_t dynamic_shared_bytes() noexcept;

// Converts to PTX's 32-bit addresses in the shared window (__cvta_generic_to_shared) and back.
uint32_t shared_window_offset(const void* generic);
// `of_cluster`: the address may be in the shared memory of another block of the cluster.
void* shared_window_address(uint32_t address, bool of_cluster = false);
// Returns the address of an offset in the calling thread's own block, for matrix descriptors: they have no bits for
// another block's rank.
void* own_shared_address(uint32_t offset);
bool is_shared(const void* generic);
// Returns the alignment in the declaration of the array with this address. The array's actual alignment may be larger.
size_t declared_alignment(const void* shared);
bool is_global(const void* generic);

// `Site` is a distinct type for each declaration and each template instantiation, so each of them has its own slot.
template <typename T, typename Site>
inline T& shared_array(const char* name, Site, size_t alignment = 0) {
    static SharedSlot slot = {sizeof(T), alignof(T), 0, 0};
    return *static_cast<T*>(shared_slot_address(&slot, name, alignment));
}

template <typename T>
inline T* dynamic_shared(const char*) {
    return static_cast<T*>(dynamic_shared_address());
}

}  // namespace sim
#pragma GCC visibility pop

// A unique identification of the place where the macro is used. It is a lambda, because every lambda expression has a
// type of its own, also in each instantiation of a template.
#define SIM_SITE [] {}
