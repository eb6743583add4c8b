// Small functions of device code: clocks, sleeping, traps, address spaces. Kernels get them through cuda_runtime.h.
#pragma once

#include "sim/device.h"
#include "sim/shared.h"

#define SIM_DEVICE_INLINE inline __attribute__((always_inline))

SIM_DEVICE_INLINE long long clock64() { return ::sim::clock_cycles(); }
SIM_DEVICE_INLINE void __nanosleep(unsigned int nanoseconds) { ::sim::nanosleep(nanoseconds); }
SIM_DEVICE_INLINE void __trap() { ::sim::trap(); }
SIM_DEVICE_INLINE void __brkpt() {}
SIM_DEVICE_INLINE unsigned int __isShared(const void* pointer) { return ::sim::is_shared(pointer); }
SIM_DEVICE_INLINE unsigned int __isGlobal(const void* pointer) { return ::sim::is_global(pointer); }
SIM_DEVICE_INLINE size_t __cvta_generic_to_shared(const void* pointer) { return ::sim::shared_window_offset(pointer); }
SIM_DEVICE_INLINE void* __cvta_shared_to_generic(size_t address) {
    return ::sim::shared_window_address(static_cast<uint32_t>(address));
}
SIM_DEVICE_INLINE size_t __cvta_generic_to_global(const void* pointer) { return reinterpret_cast<size_t>(pointer); }
SIM_DEVICE_INLINE void* __cvta_global_to_generic(size_t address) { return reinterpret_cast<void*>(address); }

#undef SIM_DEVICE_INLINE
