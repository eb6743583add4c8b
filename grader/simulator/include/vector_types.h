// CUDA's built-in vector types: char1 ... double4. (uint3 and dim3 are in sim/dim.h.)
//
// Their accesses must match a GPU's. A GPU moves a float4 with one 16-byte instruction, and the simulator counts the
// accesses that the compiler emits. Compilers often split a plain struct of four floats into four 4-byte accesses. So
// each type has a second view of its bytes, `whole`, as one machine word or vector, and copies through that. Types of
// 32 bytes copy as two halves of 16, as on a GPU (no access is wider than 128 bits). Types with three members have no
// such instruction: they are plain structs, copied member by member.
#pragma once

#include "sim/dim.h"

#ifndef __cplusplus

#define SIM_C_VECTORS(prefix, T, BYTES4)               \
    typedef struct prefix##1 { T x; }                  \
    prefix##1;                                         \
    typedef struct prefix##2 { T x, y; }               \
    __attribute__((aligned(2 * sizeof(T)))) prefix##2; \
    typedef struct prefix##4 { T x, y, z, w; }         \
    __attribute__((aligned(BYTES4))) prefix##4;
#define SIM_C_VECTORS3(prefix, T)           \
    typedef struct prefix##3 { T x, y, z; } \
    prefix##3;

SIM_C_VECTORS(char, signed char, 4)
SIM_C_VECTORS(uchar, unsigned char, 4)
SIM_C_VECTORS(short, short, 8)
SIM_C_VECTORS(ushort, unsigned short, 8)
SIM_C_VECTORS(int, int, 16)
SIM_C_VECTORS(uint, unsigned int, 16)
SIM_C_VECTORS(long, long, 16)
SIM_C_VECTORS(ulong, unsigned long, 16)
SIM_C_VECTORS(longlong, long long, 16)
SIM_C_VECTORS(ulonglong, unsigned long long, 16)
SIM_C_VECTORS(float, float, 16)
SIM_C_VECTORS(double, double, 16)
SIM_C_VECTORS3(char, signed char)
SIM_C_VECTORS3(uchar, unsigned char)
SIM_C_VECTORS3(short, short)
SIM_C_VECTORS3(ushort, unsigned short)
SIM_C_VECTORS3(int, int)
SIM_C_VECTORS3(long, long)
SIM_C_VECTORS3(ulong, unsigned long)
SIM_C_VECTORS3(longlong, long long)
SIM_C_VECTORS3(ulonglong, unsigned long long)
SIM_C_VECTORS3(float, float)
SIM_C_VECTORS3(double, double)

#undef SIM_C_VECTORS
#undef SIM_C_VECTORS3

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

#define SIM_VECTOR1(name, T) \
    struct name {            \
        T x;                 \
    };

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

#define SIM_VECTOR3(name, T) \
    struct name {            \
        T x, y, z;           \
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
    SIM_VECTOR1(prefix##1, T)  \
    SIM_VECTOR2(prefix##2, T)

SIM_VECTORS(char, signed char)
SIM_VECTORS(uchar, unsigned char)
SIM_VECTORS(short, short)
SIM_VECTORS(ushort, unsigned short)
SIM_VECTORS(int, int)
SIM_VECTORS(uint, unsigned int)
SIM_VECTORS(long, long)
SIM_VECTORS(ulong, unsigned long)
SIM_VECTORS(longlong, long long)
SIM_VECTORS(ulonglong, unsigned long long)
SIM_VECTORS(float, float)
SIM_VECTORS(double, double)

SIM_VECTOR3(char3, signed char)
SIM_VECTOR3(uchar3, unsigned char)
SIM_VECTOR3(short3, short)
SIM_VECTOR3(ushort3, unsigned short)
SIM_VECTOR3(int3, int)
SIM_VECTOR3(long3, long)
SIM_VECTOR3(ulong3, unsigned long)
SIM_VECTOR3(longlong3, long long)
SIM_VECTOR3(ulonglong3, unsigned long long)
SIM_VECTOR3(float3, float)
SIM_VECTOR3(double3, double)

SIM_VECTOR4(char4, signed char)
SIM_VECTOR4(uchar4, unsigned char)
SIM_VECTOR4(short4, short)
SIM_VECTOR4(ushort4, unsigned short)
SIM_VECTOR4(int4, int)
SIM_VECTOR4(uint4, unsigned int)
SIM_VECTOR4(float4, float)
SIM_VECTOR4_WIDE(long4, long, 16)
SIM_VECTOR4_WIDE(ulong4, unsigned long, 16)
SIM_VECTOR4_WIDE(longlong4, long long, 16)
SIM_VECTOR4_WIDE(ulonglong4, unsigned long long, 16)
SIM_VECTOR4_WIDE(double4, double, 16)
SIM_VECTOR4_WIDE(double4_16a, double, 16)
SIM_VECTOR4_WIDE(double4_32a, double, 32)
SIM_VECTOR4_WIDE(longlong4_16a, long long, 16)
SIM_VECTOR4_WIDE(longlong4_32a, long long, 32)

#undef SIM_VECTORS
#undef SIM_VECTOR4_WIDE
#undef SIM_VECTOR4
#undef SIM_VECTOR3
#undef SIM_VECTOR2
#undef SIM_VECTOR1
#undef SIM_COPY
#undef SIM_WHOLE

#undef SIM_VECTOR_INLINE

#endif
