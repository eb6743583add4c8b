// The device heap: malloc, free, new and delete in kernels.
#pragma once

namespace sim {

// Frees `pointer` if a kernel calls it. Returns false on the host, and for host memory. Reports a pointer that the heap
// did not return, or that was freed already.
bool freed_by_kernel(void* pointer, const void* caller);

}  // namespace sim
