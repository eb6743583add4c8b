// Atomic operations: libsim's entry points, one per element type. The CUDA names (atomicAdd, ...) for built-in types
// are in device_atomic_functions.h; those for half and bfloat16 are beside the types.
//
// They run in libsim, outside instrumented code, so the checks see one atomic operation rather than a read and a write.
// Each returns the old value. A compare-and-swap has a second memory order, for the case that it fails.
#pragma once

#include <stdint.h>

#include "sim/scope.h"

#pragma GCC visibility push(default)
namespace sim {

enum class AtomicOp : int {
    add,
    sub,
    min,
    max,
    exchange,
    compare_and_swap,
    bit_and,
    bit_or,
    bit_xor,
    increment,  // old >= operand ? 0 : old + 1
    decrement,  // old == 0 || old > operand ? operand : old - 1
    load,       // cuda::atomic_ref and ld.acquire
    store,
};

#define SIM_ATOMIC_ENTRY(T, name)                                              \
    T name(AtomicOp op, void* address, T operand, Scope scope = Scope::device, \
           MemoryOrder order = MemoryOrder::relaxed);
SIM_ATOMIC_ENTRY(int32_t, atomic_i32)
SIM_ATOMIC_ENTRY(uint32_t, atomic_u32)
SIM_ATOMIC_ENTRY(int64_t, atomic_i64)
SIM_ATOMIC_ENTRY(uint64_t, atomic_u64)
SIM_ATOMIC_ENTRY(float, atomic_f32)
SIM_ATOMIC_ENTRY(double, atomic_f64)
// IEEE half and bfloat16 as bit patterns, one or two per word: add, min, max, exchange.
SIM_ATOMIC_ENTRY(uint16_t, atomic_f16)
SIM_ATOMIC_ENTRY(uint16_t, atomic_bf16)
SIM_ATOMIC_ENTRY(uint32_t, atomic_f16x2)
SIM_ATOMIC_ENTRY(uint32_t, atomic_bf16x2)
#undef SIM_ATOMIC_ENTRY

#define SIM_COMPARE_AND_SWAP(T, name)                                                                                \
    T name(void* address, T compare, T value, Scope scope = Scope::device, MemoryOrder order = MemoryOrder::relaxed, \
           MemoryOrder failure = MemoryOrder::relaxed);
SIM_COMPARE_AND_SWAP(uint16_t, compare_and_swap_16)
SIM_COMPARE_AND_SWAP(uint32_t, compare_and_swap_32)
SIM_COMPARE_AND_SWAP(uint64_t, compare_and_swap_64)
#undef SIM_COMPARE_AND_SWAP

// The entry point for a type of 4 or 8 bytes.
#define SIM_ATOMIC_OF(T, Entry)                                                                         \
    inline __attribute__((always_inline)) T atomic_of(AtomicOp op, void* address, T value, Scope scope, \
                                                      MemoryOrder order) {                              \
        return static_cast<T>(Entry(op, address, value, scope, order));                                 \
    }
SIM_ATOMIC_OF(int, atomic_i32)
SIM_ATOMIC_OF(unsigned, atomic_u32)
SIM_ATOMIC_OF(long, atomic_i64)
SIM_ATOMIC_OF(long long, atomic_i64)
SIM_ATOMIC_OF(unsigned long, atomic_u64)
SIM_ATOMIC_OF(unsigned long long, atomic_u64)
SIM_ATOMIC_OF(float, atomic_f32)
SIM_ATOMIC_OF(double, atomic_f64)
#undef SIM_ATOMIC_OF

}  // namespace sim
#pragma GCC visibility pop
