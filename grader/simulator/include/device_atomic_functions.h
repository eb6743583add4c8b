// atomicAdd and the other atomic functions for CUDA's types, with the _block and _system variants.
#pragma once

#include "sim/atomics.h"

#define SIM_ATOMIC_INLINE inline __attribute__((always_inline))

// Defines one function in three scopes (device, block, system). `Entry` is libsim's entry point for the type.
#define SIM_ATOMIC_IN(name, scope, op, T, Entry, Carrier)                                                  \
    SIM_ATOMIC_INLINE T name(T* address, T value) {                                                        \
        return static_cast<T>(                                                                             \
            ::sim::Entry(::sim::AtomicOp::op, address, static_cast<Carrier>(value), ::sim::Scope::scope)); \
    }
#define SIM_ATOMIC(name, op, T, Entry, Carrier)               \
    SIM_ATOMIC_IN(name, device, op, T, Entry, Carrier)        \
    SIM_ATOMIC_IN(name##_block, block, op, T, Entry, Carrier) \
    SIM_ATOMIC_IN(name##_system, system, op, T, Entry, Carrier)

#define SIM_ATOMIC_INT(name, op) SIM_ATOMIC(name, op, int, atomic_i32, int32_t)
#define SIM_ATOMIC_UNSIGNED(name, op) SIM_ATOMIC(name, op, unsigned int, atomic_u32, uint32_t)
#define SIM_ATOMIC_LONG(name, op) SIM_ATOMIC(name, op, long long, atomic_i64, int64_t)
#define SIM_ATOMIC_UNSIGNED_LONG(name, op) SIM_ATOMIC(name, op, unsigned long long, atomic_u64, uint64_t)

SIM_ATOMIC_INT(atomicAdd, add)
SIM_ATOMIC_UNSIGNED(atomicAdd, add)
SIM_ATOMIC_UNSIGNED_LONG(atomicAdd, add)
SIM_ATOMIC(atomicAdd, add, float, atomic_f32, float)
SIM_ATOMIC(atomicAdd, add, double, atomic_f64, double)

SIM_ATOMIC_INT(atomicSub, sub)
SIM_ATOMIC_UNSIGNED(atomicSub, sub)

SIM_ATOMIC_INT(atomicExch, exchange)
SIM_ATOMIC_UNSIGNED(atomicExch, exchange)
SIM_ATOMIC_UNSIGNED_LONG(atomicExch, exchange)
SIM_ATOMIC(atomicExch, exchange, float, atomic_f32, float)

SIM_ATOMIC_INT(atomicMin, min)
SIM_ATOMIC_UNSIGNED(atomicMin, min)
SIM_ATOMIC_LONG(atomicMin, min)
SIM_ATOMIC_UNSIGNED_LONG(atomicMin, min)

SIM_ATOMIC_INT(atomicMax, max)
SIM_ATOMIC_UNSIGNED(atomicMax, max)
SIM_ATOMIC_LONG(atomicMax, max)
SIM_ATOMIC_UNSIGNED_LONG(atomicMax, max)

SIM_ATOMIC_UNSIGNED(atomicInc, increment)
SIM_ATOMIC_UNSIGNED(atomicDec, decrement)

SIM_ATOMIC_INT(atomicAnd, bit_and)
SIM_ATOMIC_UNSIGNED(atomicAnd, bit_and)
SIM_ATOMIC_UNSIGNED_LONG(atomicAnd, bit_and)
SIM_ATOMIC_INT(atomicOr, bit_or)
SIM_ATOMIC_UNSIGNED(atomicOr, bit_or)
SIM_ATOMIC_UNSIGNED_LONG(atomicOr, bit_or)
SIM_ATOMIC_INT(atomicXor, bit_xor)
SIM_ATOMIC_UNSIGNED(atomicXor, bit_xor)
SIM_ATOMIC_UNSIGNED_LONG(atomicXor, bit_xor)

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
#undef SIM_ATOMIC_INT
#undef SIM_ATOMIC_UNSIGNED
#undef SIM_ATOMIC_LONG
#undef SIM_ATOMIC_UNSIGNED_LONG
