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

int32_t atomic_i32(AtomicOp op, void* address, int32_t operand, Scope scope = Scope::device,
                   MemoryOrder order = MemoryOrder::relaxed);
uint32_t atomic_u32(AtomicOp op, void* address, uint32_t operand, Scope scope = Scope::device,
                    MemoryOrder order = MemoryOrder::relaxed);
int64_t atomic_i64(AtomicOp op, void* address, int64_t operand, Scope scope = Scope::device,
                   MemoryOrder order = MemoryOrder::relaxed);
uint64_t atomic_u64(AtomicOp op, void* address, uint64_t operand, Scope scope = Scope::device,
                    MemoryOrder order = MemoryOrder::relaxed);
float atomic_f32(AtomicOp op, void* address, float operand, Scope scope = Scope::device,
                 MemoryOrder order = MemoryOrder::relaxed);
double atomic_f64(AtomicOp op, void* address, double operand, Scope scope = Scope::device,
                  MemoryOrder order = MemoryOrder::relaxed);

// IEEE half and bfloat16 as bit patterns, one or two per word: add, min, max, exchange.
uint16_t atomic_f16(AtomicOp op, void* address, uint16_t operand, Scope scope = Scope::device,
                    MemoryOrder order = MemoryOrder::relaxed);
uint16_t atomic_bf16(AtomicOp op, void* address, uint16_t operand, Scope scope = Scope::device,
                     MemoryOrder order = MemoryOrder::relaxed);
uint32_t atomic_f16x2(AtomicOp op, void* address, uint32_t operand, Scope scope = Scope::device,
                      MemoryOrder order = MemoryOrder::relaxed);
uint32_t atomic_bf16x2(AtomicOp op, void* address, uint32_t operand, Scope scope = Scope::device,
                       MemoryOrder order = MemoryOrder::relaxed);

uint16_t compare_and_swap_16(void* address, uint16_t compare, uint16_t value, Scope scope = Scope::device,
                             MemoryOrder order = MemoryOrder::relaxed, MemoryOrder failure = MemoryOrder::relaxed);
uint32_t compare_and_swap_32(void* address, uint32_t compare, uint32_t value, Scope scope = Scope::device,
                             MemoryOrder order = MemoryOrder::relaxed, MemoryOrder failure = MemoryOrder::relaxed);
uint64_t compare_and_swap_64(void* address, uint64_t compare, uint64_t value, Scope scope = Scope::device,
                             MemoryOrder order = MemoryOrder::relaxed, MemoryOrder failure = MemoryOrder::relaxed);

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
