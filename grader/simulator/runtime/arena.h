// The arena: one reservation of address space for device memory and for host memory that the device can access. It
// holds tensors and allocations, with red zones between them.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "thread.h"

namespace sim::arena {

// The kind of memory of an allocation. `device` allocations must fit the device's memory together. `host` is pinned or
// managed memory and has no such limit: on a GPU, managed memory migrates to the host when the device is full. `heap`
// is for malloc and new in kernels.
enum class Home : uint8_t { device, host, heap };

// Allocates at 256-byte alignment plus `offset`. The memory is filled with 0xFF unless it is large. Returns null when
// there is no room. An allocation of zero bytes also has an address.
char* allocate(size_t bytes, size_t offset, Home home = Home::device);

// Sets *bytes to the size of the allocation that starts at `base`; returns false when there is none.
bool find(const void* base, size_t* bytes);
bool contains(const void* address, size_t bytes);  // returns whether the bytes lie within one allocation

// Returns false when no allocation of that kind starts at `base`.
bool release(void* base, size_t* bytes, bool from_heap = false);
void release_all();

// Makes every access to Home::host memory fault until it is unprotected. unprotect_host_memory returns true when the
// address lies on a page of such memory.
void protect_host_memory();
bool unprotect_host_memory(const void* address);

// While device memory is closed, every access to the arena faults, except to Home::host memory. It is closed while host
// code of a confined submission runs.
void close_device_memory();
void open_device_memory();
// Returns whether an access to the byte would fault.
bool is_closed(const void* address);

// Opens closed device memory while an object of this class exists, for an operation of the runtime.
class DeviceMemoryAccess {
  public:
    DeviceMemoryAccess();
    ~DeviceMemoryAccess();
    DeviceMemoryAccess(const DeviceMemoryAccess&) = delete;
    DeviceMemoryAccess& operator=(const DeviceMemoryAccess&) = delete;

  private:
    bool was_closed_;
};

bool set_megabytes(size_t megabytes);  // call it before the first allocation
size_t total_bytes();                  // size of device memory
size_t free_bytes();
size_t heap_bytes();
void set_heap_bytes(size_t bytes);
size_t reserved_bytes();  // device memory and the host memory that the device can access

}  // namespace sim::arena
