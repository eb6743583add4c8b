// Texture and surface functions of kernels: tex2D<float>(object, x, y), surf2Dwrite(value, object, x, y), ...
//
// The runtime computes the addresses and weights of a fetch's texels (libraries/runtime/textures.cpp). They are read
// here, by ordinary loads of the kernel, so initcheck and racecheck see them, and the counters include them as global
// reads.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <type_traits>

#include "cuda_fp16.h"
#include "sim/array_types.h"
#include "vector_types.h"

namespace sim {

// One texel of a fetch: its address, format and filter weight. The address is null for the border.
struct Texel {
    const void* address;
    float weight;
    unsigned bytes : 5, channels : 3, kind : 2, corners : 4, normalized : 1;
};

// The kind of fetch: the number of dimensions, plus flags.
namespace fetch {
constexpr unsigned one = 1, two = 2, three = 3, layered = 4, floats = 8;
}

#pragma GCC visibility push(default)
Texel texel(cudaTextureObject_t object, unsigned wanted, unsigned corner, float x, float y, float z);
Texel texel_at(cudaTextureObject_t object, unsigned wanted, int index);
uint32_t border_of(cudaTextureObject_t object, unsigned channel);
// Returns the address of a surface's element; null outside, where reads give zero and writes do nothing.
void* surface_element(cudaSurfaceObject_t object, unsigned wanted, int x, int y, int z, unsigned bytes,
                      cudaSurfaceBoundaryMode mode);
#pragma GCC visibility pop

namespace textures {

// The scalar type and the number of channels of a texel type: char, uchar4, float2, ...
template <typename T, typename = void>
struct Elements {
    typedef T type;
};
template <typename T>
struct Elements<T, decltype(void(T().x))> {
    typedef decltype(T().x) type;
};

typedef uint16_t Two __attribute__((may_alias));
typedef uint32_t Four __attribute__((may_alias));
typedef uint64_t Eight __attribute__((may_alias));

SIM_INLINE uint4 load(const Texel& texel) {
    const void* at = texel.address;
    if (texel.bytes == 16) return *static_cast<const uint4*>(at);
    if (texel.bytes == 8) {
        uint64_t both = *static_cast<const Eight*>(at);
        return {static_cast<uint32_t>(both), static_cast<uint32_t>(both >> 32), 0u, 0u};
    }
    uint32_t word = texel.bytes == 4   ? *static_cast<const Four*>(at)
                    : texel.bytes == 2 ? *static_cast<const Two*>(at)
                                       : *static_cast<const unsigned char*>(at);
    return {word, 0u, 0u, 0u};
}

// A channel of a texel: a sign-extended integer, or the bits of a float.
SIM_INLINE uint32_t channel(const uint4& words, const Texel& texel, unsigned c) {
    if (c >= texel.channels) return 0;
    unsigned bits = 8 * texel.bytes / texel.channels, first = bits * c;
    uint32_t word = first < 32 ? words.x : first < 64 ? words.y : first < 96 ? words.z : words.w;
    uint32_t value = bits == 32 ? word : word >> (first % 32) & ((1u << bits) - 1);
    if (texel.kind == cudaChannelFormatKindFloat && bits == 16)
        return bit_cast<uint32_t>(static_cast<float>(F16::decode(static_cast<uint16_t>(value))));
    bool negative = texel.kind == cudaChannelFormatKindSigned && bits < 32 && value >> (bits - 1);
    return negative ? value | ~0u << bits : value;
}

SIM_INLINE float as_float(uint32_t value, const Texel& texel) {
    if (!texel.normalized) return bit_cast<float>(value);
    unsigned bits = 8 * texel.bytes / texel.channels;
    if (texel.kind == cudaChannelFormatKindUnsigned)
        return static_cast<float>(value) / static_cast<float>((1u << bits) - 1);
    float scaled = static_cast<float>(static_cast<int32_t>(value)) / static_cast<float>((1u << (bits - 1)) - 1);
    return scaled < -1.0f ? -1.0f : scaled;
}

template <typename T>
SIM_INLINE T fetched(cudaTextureObject_t object, Texel texel, unsigned wanted, float x, float y, float z) {
    typedef typename Elements<T>::type Element;
    constexpr unsigned count = sizeof(T) / sizeof(Element);
    static_assert(count != 3, "textures have one, two or four channels");
    float sums[count] = {};
    Element values[count] = {};
    for (unsigned corner = 0; corner < texel.corners; ++corner) {
        if (corner) texel = ::sim::texel(object, wanted, corner, x, y, z);
        uint4 words = {0u, 0u, 0u, 0u};
        if (texel.address) words = load(texel);
        for (unsigned c = 0; c < count; ++c) {
            uint32_t value = texel.address ? channel(words, texel, c) : border_of(object, c);
            if constexpr (std::is_floating_point<Element>::value) {
                sums[c] += texel.weight * (texel.address ? as_float(value, texel) : bit_cast<float>(value));
                values[c] = texel.corners == 1 && texel.address ? as_float(value, texel) : sums[c];
            } else {
                values[c] = static_cast<Element>(value);
            }
        }
    }
    T result;
    __builtin_memcpy(&result, values, sizeof result);
    return result;
}

template <typename T>
constexpr unsigned type_of = std::is_floating_point<typename Elements<T>::type>::value ? fetch::floats : 0;

template <typename T>
SIM_INLINE T sample(cudaTextureObject_t object, unsigned how, float x, float y = 0, float z = 0) {
    unsigned wanted = how | type_of<T>;
    return fetched<T>(object, texel(object, wanted, 0, x, y, z), wanted, x, y, z);
}

template <typename T>
SIM_INLINE T at(cudaTextureObject_t object, int index) {
    return fetched<T>(object, texel_at(object, type_of<T>, index), 0, 0, 0, 0);
}

template <typename T>
SIM_INLINE T read(cudaSurfaceObject_t object, unsigned how, int x, int y, int z, cudaSurfaceBoundaryMode mode) {
    T zero = T();
    const T* element = static_cast<const T*>(surface_element(object, how, x, y, z, sizeof(T), mode));
    return element ? *element : zero;
}
template <typename T>
SIM_INLINE void write(T value, cudaSurfaceObject_t object, unsigned how, int x, int y, int z,
                      cudaSurfaceBoundaryMode mode) {
    T* element = static_cast<T*>(surface_element(object, how, x, y, z, sizeof(T), mode));
    if (element) *element = value;
}

}  // namespace textures
}  // namespace sim

// Each function has two forms: one returns the value, one stores it through a pointer passed first.
#define SIM_TO(NAME)                                                         \
    template <typename T, typename... Where>                                 \
    SIM_INLINE void NAME(T* to, unsigned long long object, Where... where) { \
        *to = NAME<T>(object, where...);                                     \
    }
#define SIM_TEXTURE(NAME, PARAMETERS, ...)              \
    template <typename T>                               \
    SIM_INLINE T NAME PARAMETERS {                      \
        return ::sim::textures::sample<T>(__VA_ARGS__); \
    }                                                   \
    SIM_TO(NAME)
// clang-format off
SIM_TEXTURE(tex1D, (cudaTextureObject_t t, float x), t, ::sim::fetch::one, x)
SIM_TEXTURE(tex2D, (cudaTextureObject_t t, float x, float y), t, ::sim::fetch::two, x, y)
SIM_TEXTURE(tex3D, (cudaTextureObject_t t, float x, float y, float z), t, ::sim::fetch::three, x, y, z)
SIM_TEXTURE(tex1DLayered, (cudaTextureObject_t t, float x, int layer), t, ::sim::fetch::one | ::sim::fetch::layered, x, 0, static_cast<float>(layer))
SIM_TEXTURE(tex2DLayered, (cudaTextureObject_t t, float x, float y, int layer), t, ::sim::fetch::two | ::sim::fetch::layered, x, y, static_cast<float>(layer))
// There are no mipmapped arrays, so every level is level 0.
SIM_TEXTURE(tex1DLod, (cudaTextureObject_t t, float x, float), t, ::sim::fetch::one, x)
SIM_TEXTURE(tex2DLod, (cudaTextureObject_t t, float x, float y, float), t, ::sim::fetch::two, x, y)
SIM_TEXTURE(tex3DLod, (cudaTextureObject_t t, float x, float y, float z, float), t, ::sim::fetch::three, x, y, z)
// clang-format on
#undef SIM_TEXTURE
template <typename T>
SIM_INLINE T tex1Dfetch(cudaTextureObject_t t, int x) {
    return ::sim::textures::at<T>(t, x);
}
SIM_TO(tex1Dfetch)

// In surface functions, the coordinate x is in bytes.
#define SIM_SURFACE(NAME, WHERE, ...)                                                                            \
    template <typename T>                                                                                        \
    SIM_INLINE T NAME##read(cudaSurfaceObject_t s, WHERE, cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) { \
        return ::sim::textures::read<T>(s, __VA_ARGS__, mode);                                                   \
    }                                                                                                            \
    SIM_TO(NAME##read)                                                                                           \
    template <typename T>                                                                                        \
    SIM_INLINE void NAME##write(T value, cudaSurfaceObject_t s, WHERE,                                           \
                                cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) {                           \
        ::sim::textures::write<T>(value, s, __VA_ARGS__, mode);                                                  \
    }
#define SIM_AND ,
SIM_SURFACE(surf1D, int x, ::sim::fetch::one, x, 0, 0)
SIM_SURFACE(surf2D, int x SIM_AND int y, ::sim::fetch::two, x, y, 0)
SIM_SURFACE(surf3D, int x SIM_AND int y SIM_AND int z, ::sim::fetch::three, x, y, z)
SIM_SURFACE(surf1DLayered, int x SIM_AND int layer, ::sim::fetch::one | ::sim::fetch::layered, x, 0, layer)
SIM_SURFACE(surf2DLayered, int x SIM_AND int y SIM_AND int layer, ::sim::fetch::two | ::sim::fetch::layered, x, y,
            layer)
#undef SIM_AND
#undef SIM_SURFACE
#undef SIM_TO

template <typename T>
inline cudaChannelFormatDesc cudaCreateChannelDesc() {
    typedef typename ::sim::textures::Elements<T>::type Element;
    constexpr bool is_half = std::is_same<T, __half>::value || std::is_same<T, __half2>::value;
    constexpr int count = std::is_same<T, __half>::value ? 1 : is_half ? 2 : sizeof(T) / sizeof(Element);
    constexpr int bits = static_cast<int>(8 * sizeof(T)) / count;
    return {bits, count > 1 ? bits : 0, count > 2 ? bits : 0, count > 3 ? bits : 0,
            is_half || std::is_floating_point<Element>::value ? cudaChannelFormatKindFloat
            : std::is_signed<Element>::value                  ? cudaChannelFormatKindSigned
                                                              : cudaChannelFormatKindUnsigned};
}
inline cudaChannelFormatDesc cudaCreateChannelDescHalf() { return {16, 0, 0, 0, cudaChannelFormatKindFloat}; }
