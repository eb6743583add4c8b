// CUDA's built-in vector types: char1 ... double4. (uint3 and dim3 are in sim/dim.h.)
//
// Their accesses must match a GPU's. A GPU moves a float4 with one 16-byte instruction, and the simulator counts the
// accesses that the compiler emits. Compilers often split a plain struct of four floats into four 4-byte accesses. So
// each type has a second view of its bytes, `whole`, as one machine word or vector, and copies through that. Types of
// 32 bytes copy as two halves of 16, as on a GPU (no access is wider than 128 bits). Types with three members have no
// such instruction: they are plain structs, copied member by member.
#pragma once

#include "sim/dim.h"

// The element types, except unsigned int: uint3 is in sim/dim.h. WIDE is for types of 8 bytes.
// clang-format off
#define SIM_ELEMENT_TYPES(NARROW, WIDE) \
    NARROW(char, signed char) NARROW(short, short) NARROW(int, int) NARROW(float, float) \
    NARROW(uchar, unsigned char) NARROW(ushort, unsigned short) \
    WIDE(long, long) WIDE(longlong, long long) WIDE(double, double) \
    WIDE(ulong, unsigned long) WIDE(ulonglong, unsigned long long)
// clang-format on

#ifndef __cplusplus

#define SIM_VECTORS(prefix, T)                         \
    typedef struct prefix##1 { T x; }                  \
    prefix##1;                                         \
    typedef struct prefix##2 { T x, y; }               \
    __attribute__((aligned(2 * sizeof(T)))) prefix##2; \
    typedef struct prefix##4 { T x, y, z, w; }         \
    __attribute__((aligned(sizeof(T) < 4 ? 4 * sizeof(T) : 16))) prefix##4;
#define SIM_VECTOR3(prefix, T)              \
    typedef struct prefix##3 { T x, y, z; } \
    prefix##3;

SIM_ELEMENT_TYPES(SIM_VECTORS, SIM_VECTORS)
SIM_VECTORS(uint, unsigned int)
SIM_ELEMENT_TYPES(SIM_VECTOR3, SIM_VECTOR3)

#undef SIM_VECTORS
#undef SIM_VECTOR3

#else

#define SIM_VECTOR_INLINE __attribute__((always_inline)) inline
// A view of N values of type T as one register. may_alias: kernels load, for example, eight halves as one uint4.
#define SIM_WHOLE(T, N) T __attribute__((vector_size(N * sizeof(T)), may_alias))

// Copies a vector as one register. A constant expression may not read the inactive union member `whole`, so there the
// copy is member by member.
#define SIM_COPY(member_wise)                \
    if (__builtin_is_constant_evaluated()) { \
        member_wise;                         \
    } else {                                 \
        whole = other.whole;                 \
    }

namespace sim {
// The type of the first constructor parameter of a vector. `float4 v = {1.0f}` must compile, but `float4 v = 1.0f` must
// not, as with CUDA. A class as parameter type has this effect, because C++ applies at most one user-defined
// conversion.
template <typename T>
struct First {
    T value;
    constexpr First(T v) : value(v) {}
};
}  // namespace sim

#define SIM_VECTOR2(name, T)                                                                                      \
    struct alignas(2 * sizeof(T)) name {                                                                          \
        union {                                                                                                   \
            struct {                                                                                              \
                T x, y;                                                                                           \
            };                                                                                                    \
            SIM_WHOLE(T, 2) whole;                                                                                \
        };                                                                                                        \
        name() = default;                                                                                         \
        constexpr SIM_VECTOR_INLINE name(::sim::First<T> a) : x(a.value), y(0) {}                                 \
        constexpr SIM_VECTOR_INLINE name(T a, T b) : x(a), y(b) {}                                                \
        constexpr SIM_VECTOR_INLINE name(const name& other) : x(0), y(0) { SIM_COPY((x = other.x, y = other.y)) } \
        constexpr SIM_VECTOR_INLINE name& operator=(const name& other) {                                          \
            SIM_COPY((x = other.x, y = other.y))                                                                  \
            return *this;                                                                                         \
        }                                                                                                         \
    };

#define SIM_VECTOR4(name, T)                                                                     \
    struct alignas(4 * sizeof(T)) name {                                                         \
        union {                                                                                  \
            struct {                                                                             \
                T x, y, z, w;                                                                    \
            };                                                                                   \
            SIM_WHOLE(T, 4) whole;                                                               \
        };                                                                                       \
        name() = default;                                                                        \
        constexpr SIM_VECTOR_INLINE name(::sim::First<T> a) : x(a.value), y(0), z(0), w(0) {}    \
        constexpr SIM_VECTOR_INLINE name(T a, T b, T c = 0, T d = 0) : x(a), y(b), z(c), w(d) {} \
        constexpr SIM_VECTOR_INLINE name(const name& other) : x(0), y(0), z(0), w(0) {           \
            SIM_COPY((x = other.x, y = other.y, z = other.z, w = other.w))                       \
        }                                                                                        \
        constexpr SIM_VECTOR_INLINE name& operator=(const name& other) {                         \
            SIM_COPY((x = other.x, y = other.y, z = other.z, w = other.w))                       \
            return *this;                                                                        \
        }                                                                                        \
    };

// Four values of 8 bytes: 32 bytes, two accesses. ALIGN is 16 for CUDA's ordinary types, 32 for the *_32a ones.
#define SIM_VECTOR4_WIDE(name, T, ALIGN)                                                         \
    struct alignas(ALIGN) name {                                                                 \
        union {                                                                                  \
            struct {                                                                             \
                T x, y, z, w;                                                                    \
            };                                                                                   \
            struct {                                                                             \
                SIM_WHOLE(T, 2) first, second;                                                   \
            };                                                                                   \
        };                                                                                       \
        name() = default;                                                                        \
        constexpr SIM_VECTOR_INLINE name(::sim::First<T> a) : x(a.value), y(0), z(0), w(0) {}    \
        constexpr SIM_VECTOR_INLINE name(T a, T b, T c = 0, T d = 0) : x(a), y(b), z(c), w(d) {} \
        SIM_VECTOR_INLINE name(const name& other) : first(other.first), second(other.second) {}  \
        SIM_VECTOR_INLINE name& operator=(const name& other) {                                   \
            first = other.first;                                                                 \
            second = other.second;                                                               \
            return *this;                                                                        \
        }                                                                                        \
    };

#define SIM_VECTORS(prefix, T) \
    struct prefix##1 { T x; }; \
    SIM_VECTOR2(prefix##2, T)
#define SIM_VECTOR3(prefix, T) \
    struct prefix##3 { T x, y, z; };
#define SIM_NARROW_VECTORS(prefix, T) \
    SIM_VECTORS(prefix, T)            \
    SIM_VECTOR4(prefix##4, T)
#define SIM_WIDE_VECTORS(prefix, T)        \
    SIM_VECTORS(prefix, T)                 \
    SIM_VECTOR4_WIDE(prefix##4, T, 16)     \
    SIM_VECTOR4_WIDE(prefix##4_16a, T, 16) \
    SIM_VECTOR4_WIDE(prefix##4_32a, T, 32)

SIM_ELEMENT_TYPES(SIM_NARROW_VECTORS, SIM_WIDE_VECTORS)
SIM_NARROW_VECTORS(uint, unsigned int)
SIM_ELEMENT_TYPES(SIM_VECTOR3, SIM_VECTOR3)

#undef SIM_WIDE_VECTORS
#undef SIM_NARROW_VECTORS
#undef SIM_VECTORS
#undef SIM_VECTOR4_WIDE
#undef SIM_VECTOR4
#undef SIM_VECTOR3
#undef SIM_VECTOR2
#undef SIM_COPY
#undef SIM_WHOLE

#undef SIM_VECTOR_INLINE

#endif
