// Shared memory: static arrays and the dynamic buffer of the running block.
//
// Every static array has a slot. The first thread that needs it in a launch gives it a place in the block's shared
// memory; every block of the launch then uses the same place. Red zones between arrays are not counted as usage.
#pragma once

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)
namespace sim {

struct SharedSlot {
    size_t bytes;
    size_t alignment;
    uint64_t launch;  // the launch for which `offset` holds
    size_t offset;    // from the start of the block's shared memory
};

// Where the running block keeps this array. Constant for a thread, so one call serves many uses.
[[gnu::const]] void* shared_slot_address(SharedSlot* slot, const char* name, size_t alignment) noexcept;
[[gnu::const]] void* dynamic_shared_address() noexcept;
[[gnu::const]] size_t dynamic_shared_bytes() noexcept;

// PTX's 32-bit addresses in the shared window (__cvta_generic_to_shared) and back.
uint32_t shared_window_offset(const void* generic);
// `of_cluster`: it may be in the shared memory of another block of the cluster.
void* shared_window_address(uint32_t address, bool of_cluster = false);
// The same of the calling thread's own block: a matrix descriptor has no bits for the rank of another one.
void* own_shared_address(uint32_t offset);
bool is_shared(const void* generic);
// What the declaration of the array that holds this address promises: by luck an array may be aligned to more.
size_t declared_alignment(const void* shared);
bool is_global(const void* generic);

// `Site` is a type of its own for each declaration and template instantiation, so the slot is too.
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

// A fresh closure type per occurrence, and per instantiation where it stands in a template.
#define SIM_SITE [] {}
