// atomicAdd and the other atomic functions for CUDA's types, with the _block and _system variants.
#pragma once

#include "sim/atomics.h"

#define SIM_ATOMIC_INLINE inline __attribute__((always_inline))

// Defines one function in three scopes (device, block, system).
#define SIM_ATOMIC_IN(name, scope, op, T)                                                 \
    SIM_ATOMIC_INLINE T name(T* address, T value) {                                       \
        return ::sim::atomic_of(::sim::AtomicOp::op, address, value, ::sim::Scope::scope, \
                                ::sim::MemoryOrder::relaxed);                             \
    }
#define SIM_ATOMIC(name, op, T)               \
    SIM_ATOMIC_IN(name, device, op, T)        \
    SIM_ATOMIC_IN(name##_block, block, op, T) \
    SIM_ATOMIC_IN(name##_system, system, op, T)

// The types of most functions. (min and max also take long long.)
#define SIM_ATOMIC_BITS(name, op)      \
    SIM_ATOMIC(name, op, int)          \
    SIM_ATOMIC(name, op, unsigned int) \
    SIM_ATOMIC(name, op, unsigned long long)

SIM_ATOMIC_BITS(atomicAdd, add)
SIM_ATOMIC(atomicAdd, add, float)
SIM_ATOMIC(atomicAdd, add, double)
SIM_ATOMIC(atomicSub, sub, int)
SIM_ATOMIC(atomicSub, sub, unsigned int)
SIM_ATOMIC_BITS(atomicExch, exchange)
SIM_ATOMIC(atomicExch, exchange, float)
SIM_ATOMIC_BITS(atomicMin, min)
SIM_ATOMIC(atomicMin, min, long long)
SIM_ATOMIC_BITS(atomicMax, max)
SIM_ATOMIC(atomicMax, max, long long)
SIM_ATOMIC(atomicInc, increment, unsigned int)
SIM_ATOMIC(atomicDec, decrement, unsigned int)
SIM_ATOMIC_BITS(atomicAnd, bit_and)
SIM_ATOMIC_BITS(atomicOr, bit_or)
SIM_ATOMIC_BITS(atomicXor, bit_xor)

#define SIM_ATOMIC_CAS_IN(name, scope, T, Bits, Entry)                                                         \
    SIM_ATOMIC_INLINE T name(T* address, T compare, T value) {                                                 \
        return static_cast<T>(                                                                                 \
            ::sim::Entry(address, static_cast<Bits>(compare), static_cast<Bits>(value), ::sim::Scope::scope)); \
    }
#define SIM_ATOMIC_CAS(T, Bits, Entry)                        \
    SIM_ATOMIC_CAS_IN(atomicCAS, device, T, Bits, Entry)      \
    SIM_ATOMIC_CAS_IN(atomicCAS_block, block, T, Bits, Entry) \
    SIM_ATOMIC_CAS_IN(atomicCAS_system, system, T, Bits, Entry)

SIM_ATOMIC_CAS(unsigned short, uint16_t, compare_and_swap_16)
SIM_ATOMIC_CAS(int, uint32_t, compare_and_swap_32)
SIM_ATOMIC_CAS(unsigned int, uint32_t, compare_and_swap_32)
SIM_ATOMIC_CAS(unsigned long long, uint64_t, compare_and_swap_64)

#undef SIM_ATOMIC_CAS
#undef SIM_ATOMIC_CAS_IN
#undef SIM_ATOMIC_BITS
