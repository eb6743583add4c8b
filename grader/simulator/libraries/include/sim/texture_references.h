// Texture references, which CUDA 12 removed, for older programs (`grader run`, `grader nvcc`). Binding one creates a
// texture object of sim/textures.h.
#pragma once

#include <limits.h>

#include "sim/textures.h"

#define cudaTextureType1D 0x01
#define cudaTextureType2D 0x02
#define cudaTextureType3D 0x03
#define cudaTextureType1DLayered 0xF1
#define cudaTextureType2DLayered 0xF2

struct textureReference {
    int normalized;
    cudaTextureFilterMode filterMode;
    cudaTextureAddressMode addressMode[3];
    cudaChannelFormatDesc channelDesc;
    int sRGB;
    unsigned int maxAnisotropy;
    cudaTextureReadMode sim_mode;
    mutable cudaTextureObject_t sim_object;
};

template <typename T, int dimensions = cudaTextureType1D, cudaTextureReadMode mode = cudaReadModeElementType>
struct texture : textureReference {
    texture(int normal = 0, cudaTextureFilterMode filter = cudaFilterModePoint,
            cudaTextureAddressMode address = cudaAddressModeClamp)
        : texture(normal, filter, address, cudaCreateChannelDesc<T>()) {}
    texture(int normal, cudaTextureFilterMode filter, cudaTextureAddressMode address, cudaChannelFormatDesc channels)
        : textureReference{normal, filter, {address, address, address}, channels, 0, 0, mode, 0} {}
};

namespace sim {
namespace textures {

inline cudaError_t unbind(const textureReference& reference) {
    cudaTextureObject_t bound = reference.sim_object;
    reference.sim_object = 0;
    return bound ? cudaDestroyTextureObject(bound) : cudaSuccess;
}

inline cudaError_t bind(const textureReference& reference, const cudaResourceDesc& resource, size_t* offset = nullptr) {
    unbind(reference);
    if (offset) *offset = 0;
    cudaTextureDesc desc = {};
    for (int d = 0; d < 3; ++d) desc.addressMode[d] = reference.addressMode[d];
    desc.filterMode = reference.filterMode;
    desc.readMode = reference.sim_mode;
    desc.sRGB = reference.sRGB;
    desc.normalizedCoords = reference.normalized;
    desc.maxAnisotropy = reference.maxAnisotropy;
    return cudaCreateTextureObject(&reference.sim_object, &resource, &desc, nullptr);
}

// Kernels use the object that was bound at the launch; reading it from the host variable is not an access by the
// kernel.
__attribute__((noinline, no_sanitize("thread"))) inline cudaTextureObject_t bound(const textureReference& reference) {
    return reference.sim_object;
}

// The result type of a texture fetch. It is the element type T, or for cudaReadModeNormalizedFloat a float vector with
// as many channels as T.
template <typename T, cudaTextureReadMode, size_t = sizeof(T) / sizeof(typename Elements<T>::type)>
struct Fetched {
    typedef T type;
};
template <typename T>
struct Fetched<T, cudaReadModeNormalizedFloat, 1> {
    typedef float type;
};
template <typename T>
struct Fetched<T, cudaReadModeNormalizedFloat, 2> {
    typedef float2 type;
};
template <typename T>
struct Fetched<T, cudaReadModeNormalizedFloat, 4> {
    typedef float4 type;
};

}  // namespace textures
}  // namespace sim

inline cudaError_t cudaBindTexture(size_t* offset, const textureReference* reference, const void* memory,
                                   const cudaChannelFormatDesc* channels, size_t bytes = UINT_MAX) {
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear = {const_cast<void*>(memory), *channels, bytes};
    return ::sim::textures::bind(*reference, resource, offset);
}
inline cudaError_t cudaBindTexture(size_t* offset, const textureReference& reference, const void* memory,
                                   const cudaChannelFormatDesc& channels, size_t bytes = UINT_MAX) {
    return cudaBindTexture(offset, &reference, memory, &channels, bytes);
}
inline cudaError_t cudaBindTexture(size_t* offset, const textureReference& reference, const void* memory,
                                   size_t bytes = UINT_MAX) {
    return cudaBindTexture(offset, &reference, memory, &reference.channelDesc, bytes);
}
inline cudaError_t cudaBindTexture2D(size_t* offset, const textureReference* reference, const void* memory,
                                     const cudaChannelFormatDesc* channels, size_t width, size_t height, size_t pitch) {
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypePitch2D;
    resource.res.pitch2D = {const_cast<void*>(memory), *channels, width, height, pitch};
    return ::sim::textures::bind(*reference, resource, offset);
}
inline cudaError_t cudaBindTexture2D(size_t* offset, const textureReference& reference, const void* memory,
                                     const cudaChannelFormatDesc& channels, size_t width, size_t height, size_t pitch) {
    return cudaBindTexture2D(offset, &reference, memory, &channels, width, height, pitch);
}
inline cudaError_t cudaBindTexture2D(size_t* offset, const textureReference& reference, const void* memory,
                                     size_t width, size_t height, size_t pitch) {
    return cudaBindTexture2D(offset, &reference, memory, &reference.channelDesc, width, height, pitch);
}
inline cudaError_t cudaBindTextureToArray(const textureReference* reference, cudaArray_const_t array,
                                          const cudaChannelFormatDesc*) {
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = const_cast<cudaArray_t>(array);
    return ::sim::textures::bind(*reference, resource);
}
inline cudaError_t cudaBindTextureToArray(const textureReference& reference, cudaArray_const_t array,
                                          const cudaChannelFormatDesc& channels) {
    return cudaBindTextureToArray(&reference, array, &channels);
}
inline cudaError_t cudaBindTextureToArray(const textureReference& reference, cudaArray_const_t array) {
    return cudaBindTextureToArray(&reference, array, nullptr);
}
inline cudaError_t cudaUnbindTexture(const textureReference* reference) { return ::sim::textures::unbind(*reference); }
inline cudaError_t cudaUnbindTexture(const textureReference& reference) { return ::sim::textures::unbind(reference); }

#define SIM_TEXTURE(NAME, PARAMETERS, ...)                                                                             \
    template <typename T, cudaTextureReadMode mode>                                                                    \
    SIM_INLINE typename ::sim::textures::Fetched<T, mode>::type NAME PARAMETERS {                                      \
        return NAME<typename ::sim::textures::Fetched<T, mode>::type>(::sim::textures::bound(reference), __VA_ARGS__); \
    }
#define SIM_REFERENCE(TYPE) const texture<T, TYPE, mode>& reference
SIM_TEXTURE(tex1Dfetch, (SIM_REFERENCE(cudaTextureType1D), int x), x)
SIM_TEXTURE(tex1D, (SIM_REFERENCE(cudaTextureType1D), float x), x)
SIM_TEXTURE(tex2D, (SIM_REFERENCE(cudaTextureType2D), float x, float y), x, y)
SIM_TEXTURE(tex3D, (SIM_REFERENCE(cudaTextureType3D), float x, float y, float z), x, y, z)
SIM_TEXTURE(tex1DLayered, (SIM_REFERENCE(cudaTextureType1DLayered), float x, int layer), x, layer)
SIM_TEXTURE(tex2DLayered, (SIM_REFERENCE(cudaTextureType2DLayered), float x, float y, int layer), x, y, layer)
#undef SIM_REFERENCE
#undef SIM_TEXTURE
