// Device memory: one reservation of address space, tensors and allocations in it with red zones between them.
#pragma once

#include <stddef.h>

#include "thread.h"

namespace sim::arena {

// 256-byte aligned (plus `offset`), filled with 0xFF; null when the arena is full. Zero bytes get a place too.
char* allocate(size_t bytes, size_t offset);

// Bytes of the allocation that starts at `base`; false when there is none.
bool find(const void* base, size_t* bytes);
bool contains(const void* address, size_t bytes);  // wholly within one allocation

bool release(void* base, size_t* bytes);  // false when nothing starts there
void release_all();

bool set_megabytes(size_t megabytes);  // before the first allocation
size_t total_bytes();
size_t free_bytes();

}  // namespace sim::arena
