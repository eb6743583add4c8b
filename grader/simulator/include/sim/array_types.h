// CUDA arrays and the descriptors of textures and surfaces: types of the runtime API, with NVIDIA's names and values.
#pragma once

#include "driver_types.h"
#include "sim/symbol.h"

struct cudaArray;
typedef struct cudaArray* cudaArray_t;
typedef const struct cudaArray* cudaArray_const_t;
struct cudaMipmappedArray;
typedef struct cudaMipmappedArray* cudaMipmappedArray_t;
typedef unsigned long long cudaTextureObject_t;
typedef unsigned long long cudaSurfaceObject_t;

#define cudaArrayDefault 0x00
#define cudaArrayLayered 0x01
#define cudaArraySurfaceLoadStore 0x02
#define cudaArrayCubemap 0x04
#define cudaArrayTextureGather 0x08

enum cudaChannelFormatKind {
    cudaChannelFormatKindSigned = 0,
    cudaChannelFormatKindUnsigned = 1,
    cudaChannelFormatKindFloat = 2,
    cudaChannelFormatKindNone = 3
};
enum cudaResourceType {
    cudaResourceTypeArray = 0,
    cudaResourceTypeMipmappedArray = 1,
    cudaResourceTypeLinear = 2,
    cudaResourceTypePitch2D = 3
};
enum cudaTextureAddressMode {
    cudaAddressModeWrap = 0,
    cudaAddressModeClamp = 1,
    cudaAddressModeMirror = 2,
    cudaAddressModeBorder = 3
};
enum cudaTextureFilterMode { cudaFilterModePoint = 0, cudaFilterModeLinear = 1 };
enum cudaTextureReadMode { cudaReadModeElementType = 0, cudaReadModeNormalizedFloat = 1 };
enum cudaSurfaceBoundaryMode { cudaBoundaryModeZero = 0, cudaBoundaryModeClamp = 1, cudaBoundaryModeTrap = 2 };

struct cudaChannelFormatDesc {
    int x, y, z, w;  // bits of each channel
    enum cudaChannelFormatKind f;
};
struct cudaExtent {
    size_t width, height, depth;
};
struct cudaPos {
    size_t x, y, z;
};
struct cudaPitchedPtr {
    void* ptr;
    size_t pitch, xsize, ysize;
};
struct cudaMemcpy3DParms {
    cudaArray_t srcArray;
    struct cudaPos srcPos;
    struct cudaPitchedPtr srcPtr;
    cudaArray_t dstArray;
    struct cudaPos dstPos;
    struct cudaPitchedPtr dstPtr;
    struct cudaExtent extent;
    enum cudaMemcpyKind kind;
};
struct cudaResourceDesc {
    enum cudaResourceType resType;
    union {
        struct {
            cudaArray_t array;
        } array;
        struct {
            cudaMipmappedArray_t mipmap;
        } mipmap;
        struct {
            void* devPtr;
            struct cudaChannelFormatDesc desc;
            size_t sizeInBytes;
        } linear;
        struct {
            void* devPtr;
            struct cudaChannelFormatDesc desc;
            size_t width, height, pitchInBytes;
        } pitch2D;
        struct {
            int reserved[32];
        } reserved;
    } res;
    unsigned int flags;
};
struct cudaResourceViewDesc;
struct cudaTextureDesc {
    enum cudaTextureAddressMode addressMode[3];
    enum cudaTextureFilterMode filterMode;
    enum cudaTextureReadMode readMode;
    int sRGB;
    float borderColor[4];
    int normalizedCoords;
    unsigned int maxAnisotropy;
    enum cudaTextureFilterMode mipmapFilterMode;
    float mipmapLevelBias, minMipmapLevelClamp, maxMipmapLevelClamp;
    int disableTrilinearOptimization;
    int seamlessCubemap;
};

#pragma GCC visibility push(default)
SIM_BEGIN_C
SIM_API(cudaMallocArray, cudaArray_t* array, const struct cudaChannelFormatDesc* channels, size_t width,
        size_t height SIM_DEFAULT(0), unsigned int flags SIM_DEFAULT(0));
SIM_API(cudaMalloc3DArray, cudaArray_t* array, const struct cudaChannelFormatDesc* channels, struct cudaExtent extent,
        unsigned int flags SIM_DEFAULT(0));
SIM_API(cudaFreeArray, cudaArray_t array);
SIM_API(cudaArrayGetInfo, struct cudaChannelFormatDesc* channels, struct cudaExtent* extent, unsigned int* flags,
        cudaArray_t array);
SIM_API(cudaGetChannelDesc, struct cudaChannelFormatDesc* channels, cudaArray_const_t array);
SIM_API(cudaMemcpyToArray, cudaArray_t to, size_t x, size_t y, const void* from, size_t bytes,
        enum cudaMemcpyKind kind);
SIM_API(cudaMemcpyFromArray, void* to, cudaArray_const_t from, size_t x, size_t y, size_t bytes,
        enum cudaMemcpyKind kind);
SIM_API(cudaMemcpy2DToArray, cudaArray_t to, size_t x, size_t y, const void* from, size_t pitch, size_t width,
        size_t height, enum cudaMemcpyKind kind);
SIM_API(cudaMemcpy2DToArrayAsync, cudaArray_t to, size_t x, size_t y, const void* from, size_t pitch, size_t width,
        size_t height, enum cudaMemcpyKind kind, cudaStream_t stream SIM_DEFAULT(nullptr));
SIM_API(cudaMemcpy2DFromArray, void* to, size_t pitch, cudaArray_const_t from, size_t x, size_t y, size_t width,
        size_t height, enum cudaMemcpyKind kind);
SIM_API(cudaMemcpy2DFromArrayAsync, void* to, size_t pitch, cudaArray_const_t from, size_t x, size_t y, size_t width,
        size_t height, enum cudaMemcpyKind kind, cudaStream_t stream SIM_DEFAULT(nullptr));
SIM_API(cudaMemcpy3D, const struct cudaMemcpy3DParms* copy);
SIM_API(cudaMemcpy3DAsync, const struct cudaMemcpy3DParms* copy, cudaStream_t stream SIM_DEFAULT(nullptr));
SIM_API(cudaMalloc3D, struct cudaPitchedPtr* pointer, struct cudaExtent extent);
SIM_API(cudaMemset3D, struct cudaPitchedPtr pointer, int value, struct cudaExtent extent);
SIM_API(cudaMemset3DAsync, struct cudaPitchedPtr pointer, int value, struct cudaExtent extent,
        cudaStream_t stream SIM_DEFAULT(nullptr));
SIM_API(cudaCreateTextureObject, cudaTextureObject_t* object, const struct cudaResourceDesc* resource,
        const struct cudaTextureDesc* texture, const struct cudaResourceViewDesc* view);
SIM_API(cudaDestroyTextureObject, cudaTextureObject_t object);
SIM_API(cudaCreateSurfaceObject, cudaSurfaceObject_t* object, const struct cudaResourceDesc* resource);
SIM_API(cudaDestroySurfaceObject, cudaSurfaceObject_t object);
SIM_END_C
#pragma GCC visibility pop

SIM_API_INLINE struct cudaExtent make_cudaExtent(size_t width, size_t height, size_t depth) {
    struct cudaExtent made = {width, height, depth};
    return made;
}
SIM_API_INLINE struct cudaPos make_cudaPos(size_t x, size_t y, size_t z) {
    struct cudaPos made = {x, y, z};
    return made;
}
SIM_API_INLINE struct cudaPitchedPtr make_cudaPitchedPtr(void* pointer, size_t pitch, size_t xsize, size_t ysize) {
    struct cudaPitchedPtr made = {pointer, pitch, xsize, ysize};
    return made;
}
SIM_API_INLINE struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
                                                                  enum cudaChannelFormatKind kind) {
    struct cudaChannelFormatDesc made = {x, y, z, w, kind};
    return made;
}
