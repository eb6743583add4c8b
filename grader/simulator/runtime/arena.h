// Device memory, and what else the device reaches: one reservation of address space, tensors and allocations in it with red zones
// between them.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "thread.h"

namespace sim::arena {

// Whose memory it is: only the device's is limited by the device's size. Pinned memory lies on the host, and managed memory moves
// there where the device has no room for it. The heap is what kernels take memory from: a part of the device of a size of its own.
enum class Home : uint8_t { device, host, heap };

// 256-byte aligned (plus `offset`), filled with 0xFF unless it is large; null when there is no room. Zero bytes get a place too.
char* allocate(size_t bytes, size_t offset, Home home = Home::device);

// Bytes of the allocation that starts at `base`; false when there is none.
bool find(const void* base, size_t* bytes);
bool contains(const void* address, size_t bytes);  // wholly within one allocation

// False when nothing starts there, or nothing of that kind.
bool release(void* base, size_t* bytes, bool from_heap = false);
void release_all();

// Accesses of Home::host fault until it is given back. True when the address lies in such memory.
void take_away_host_memory();
bool give_back_host_memory(const void* address);

bool set_megabytes(size_t megabytes);  // before the first allocation
size_t total_bytes();                  // of the device
size_t free_bytes();
size_t heap_bytes();
void set_heap_bytes(size_t bytes);
size_t reserved_bytes();  // for the device and for memory of the host that it reaches

}  // namespace sim::arena
