// Texture and surface objects, and the texels and weights of a fetch.
//
// CUDA C++ Programming Guide, "Texture Fetching": filter weights have 8 fractional bits, the address mode maps
// coordinates outside of the texture, and non-normalized coordinates support clamp and border only.
#include "sim/textures.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>

#include "runtime/arrays.h"
#include "submission_sandbox/sandbox.h"
#include "runtime/refuse.h"
#include "runtime/scheduler.h"
#include "sim/error_codes.h"

#define CALLER __builtin_return_address(0)

namespace sim {

namespace {

struct Object {
    bool used, surface, linear;  // `linear`: linear memory, for tex1Dfetch
    cudaArray memory;            // an array of the program, or the description of other memory as an array
    cudaTextureDesc texture;

    bool layered() const { return memory.flags & cudaArrayLayered; }
    // Layers count as the last dimension of the size.
    unsigned dimensions() const { return memory.depth && !layered() ? 3 : memory.height ? 2 : 1; }
    long long size(unsigned dimension) const {
        size_t size = dimension == 0 ? memory.width : dimension == 1 ? memory.height : memory.depth;
        return size ? static_cast<long long>(size) : 1;
    }
    bool fits(unsigned wanted) const {
        return (wanted & 3) == dimensions() && !!(wanted & fetch::layered) == layered();
    }
    char* at(long long x, long long y, long long z) const {
        return memory.base + z * static_cast<long long>(memory.slice()) + y * static_cast<long long>(memory.pitch) + x;
    }
};

constexpr size_t max_objects = 1024;
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
Object objects[max_objects];

cudaError_t add(const char* call, unsigned long long* handle, const Object& made, const void* caller) {
    pthread_mutex_lock(&lock);
    size_t i = 0;
    while (i < max_objects && objects[i].used) ++i;
    if (i < max_objects) objects[i] = made;
    pthread_mutex_unlock(&lock);
    if (i == max_objects)
        return refuse(call, cudaErrorMemoryAllocation,
                      "too many texture and surface objects: at most 1,024, destroy some first", caller);
    *sandbox::result(handle) = i + 1;
    return cudaSuccess;
}

cudaError_t remove(const char* call, unsigned long long handle, bool surface, const void* caller) {
    bool known = handle - 1 < max_objects && objects[handle - 1].used && objects[handle - 1].surface == surface;
    if (!known) return refuse(call, cudaErrorInvalidValue, "the object was never created, or was destroyed", caller);
    objects[handle - 1].used = false;
    return cudaSuccess;
}

// Returns why memory cannot be bound to a texture, or null.
const char* take_resource(Object& object, const cudaResourceDesc& resource) {
    size_t base_multiple = 256, pitch_multiple = 32;
    cudaArray& memory = object.memory;
    switch (resource.resType) {
        case cudaResourceTypeArray:
            if (!find_array(resource.res.array.array)) return "not a CUDA array, or it was freed already";
            memory = *resource.res.array.array;
            return nullptr;
        case cudaResourceTypeLinear: {
            const auto& from = resource.res.linear;
            size_t element = element_bytes(from.desc);
            memory = {static_cast<char*>(from.devPtr),
                      element ? from.sizeInBytes / element : 0,
                      0,
                      0,
                      0,
                      from.desc,
                      element,
                      0};
            object.linear = true;
            break;
        }
        case cudaResourceTypePitch2D: {
            const auto& from = resource.res.pitch2D;
            memory = {static_cast<char*>(from.devPtr), from.width,       from.height, 0, 0, from.desc,
                      element_bytes(from.desc),        from.pitchInBytes};
            if (memory.pitch % pitch_multiple || memory.pitch < from.width * memory.element)
                return "the pitch must be a multiple of 32 bytes and at least the size of a row";
            break;
        }
        default:
            return "the simulator does not support mipmapped arrays: use one array per level";
    }
    if (!memory.element) return "invalid channel format: one, two or four channels of 8, 16 or 32 bits";
    if (!memory.base || reinterpret_cast<uintptr_t>(memory.base) % base_multiple)
        return "misaligned texture memory: bind the pointer that cudaMalloc returned";
    return nullptr;
}

bool reads_floats(const Object& object) {
    return object.memory.channels.f == cudaChannelFormatKindFloat ||
           object.texture.readMode == cudaReadModeNormalizedFloat;
}

const char* wrong_texture(const Object& object) {
    const cudaTextureDesc& texture = object.texture;
    if (texture.sRGB || texture.maxAnisotropy > 1) return "the simulator does not support sRGB and anisotropic filters";
    if (texture.filterMode == cudaFilterModeLinear && !reads_floats(object))
        return "cudaFilterModeLinear needs elements that are floats, or cudaReadModeNormalizedFloat";
    if (texture.readMode == cudaReadModeNormalizedFloat && object.memory.channels.f != cudaChannelFormatKindFloat &&
        object.memory.channels.x == 32)
        return "cudaReadModeNormalizedFloat needs elements of 8 or 16 bits";
    return nullptr;
}

[[noreturn]] void misused(const char* why, const void* caller) {
    raise_fault(events::FaultKind::device_exception, cudaErrorLaunchFailure, nullptr, caller, why);
}

const Object& find(unsigned long long handle, bool surface, const void* caller) {
    if (handle - 1 >= max_objects || !objects[handle - 1].used || objects[handle - 1].surface != surface)
        misused(surface ? "invalid surface object: it was never created, or was destroyed"
                        : "invalid texture object: it was never created, or was destroyed",
                caller);
    return objects[handle - 1];
}

const Object& find_texture(cudaTextureObject_t handle, unsigned wanted, const void* caller) {
    const Object& object = find(handle, false, caller);
    if (reads_floats(object) != !!(wanted & fetch::floats))
        misused(reads_floats(object) ? "a texture of floats is read as integers: use the element type of the texture"
                                     : "a texture of integers is read as floats: use the element type of the texture",
                caller);
    return object;
}

Texel texel_of(const Object& object, const void* address, float weight, unsigned corners) {
    const cudaChannelFormatDesc& channels = object.memory.channels;
    Texel texel = {};
    texel.address = address;
    texel.weight = weight;
    texel.bytes = object.memory.element & 31;
    texel.channels = (channels.w ? 4 : channels.y ? 2 : 1);
    texel.kind = channels.f & 3;
    texel.corners = corners & 15;
    texel.normalized = channels.f != cudaChannelFormatKindFloat && reads_floats(object);
    return texel;
}

// Returns the texel at `index` along a dimension, or -1 for the border.
long long inside(long long index, long long size, cudaTextureAddressMode mode) {
    if (index >= 0 && index < size) return index;
    switch (mode) {
        case cudaAddressModeBorder:
            return -1;
        case cudaAddressModeWrap:
            return (index % size + size) % size;
        case cudaAddressModeMirror: {
            long long period = (index % (2 * size) + 2 * size) % (2 * size);
            return period < size ? period : 2 * size - 1 - period;
        }
        default:
            return index < 0 ? 0 : size - 1;
    }
}

// Returns the index of a texel along one dimension, and its weight. A linear filter interpolates two texels per
// dimension; `second` selects one of them.
long long along(const Object& object, unsigned dimension, float coordinate, bool second, float* weight) {
    const cudaTextureDesc& texture = object.texture;
    long long size = object.size(dimension);
    cudaTextureAddressMode mode = texture.addressMode[dimension];
    if (texture.normalizedCoords)
        coordinate *= static_cast<float>(size);
    else if (mode == cudaAddressModeWrap || mode == cudaAddressModeMirror)
        mode = cudaAddressModeClamp;
    bool linear = texture.filterMode == cudaFilterModeLinear;
    if (linear) coordinate -= 0.5f;
    if (!(coordinate > -1e9f)) coordinate = -1e9f;  // also for NaN
    if (coordinate > 1e9f) coordinate = 1e9f;
    float whole = floorf(coordinate);
    if (linear) {
        float fraction = floorf((coordinate - whole) * 256 + 0.5f) / 256;
        *weight *= second ? fraction : 1 - fraction;
    }
    return inside(static_cast<long long>(whole) + second, size, mode);
}

}  // namespace

Texel texel(cudaTextureObject_t handle, unsigned wanted, unsigned corner, float x, float y, float z) {
    const Object& object = find_texture(handle, wanted, CALLER);
    unsigned dimensions = wanted & 3;
    if (object.linear) misused("a texture of linear memory can only be read with tex1Dfetch", CALLER);
    if (!object.fits(wanted))
        misused("the texture's number of dimensions differs from that of the fetch function", CALLER);
    float coordinates[3] = {x, y, z}, weight = 1;
    long long index[3] = {};
    bool border = false;
    for (unsigned d = 0; d < dimensions; ++d) {
        index[d] = along(object, d, coordinates[d], corner >> d & 1, &weight);
        border = border || index[d] < 0;
    }
    if (object.layered()) index[2] = inside(static_cast<long long>(z), object.size(2), cudaAddressModeClamp);
    const char* address = object.at(index[0] * static_cast<long long>(object.memory.element), index[1], index[2]);
    unsigned corners = object.texture.filterMode == cudaFilterModeLinear ? 1u << dimensions : 1;
    return texel_of(object, border ? nullptr : address, weight, corners);
}

// Outside a texture of linear memory, texels are zero.
Texel texel_at(cudaTextureObject_t handle, unsigned wanted, int index) {
    const Object& object = find_texture(handle, wanted, CALLER);
    if (!object.linear) misused("tex1Dfetch requires a texture of linear memory", CALLER);
    bool outside = index < 0 || static_cast<size_t>(index) >= object.memory.width;
    const char* address = object.memory.base + static_cast<ptrdiff_t>(object.memory.element) * index;
    return texel_of(object, outside ? nullptr : address, 1, 1);
}

uint32_t border_of(cudaTextureObject_t handle, unsigned channel) {
    const Object& object = find(handle, false, CALLER);
    return object.linear ? 0 : bit_cast<uint32_t>(object.texture.borderColor[channel & 3]);
}

void* surface_element(cudaSurfaceObject_t handle, unsigned wanted, int x, int y, int z, unsigned bytes,
                      cudaSurfaceBoundaryMode mode) {
    const Object& object = find(handle, true, CALLER);
    if (!object.fits(wanted))
        misused("the surface's number of dimensions differs from that of the access function", CALLER);
    long long index[3] = {x, y, z};
    long long size[3] = {static_cast<long long>(object.memory.pitch), object.size(1), object.size(2)};
    for (unsigned d = 0; d < 3; ++d) {
        long long last = d == 0 ? size[d] - static_cast<long long>(bytes) : size[d] - 1;
        if (index[d] >= 0 && index[d] <= last) continue;
        if (mode == cudaBoundaryModeZero) return nullptr;
        if (mode == cudaBoundaryModeTrap || last < 0) {
            char why[160];
            snprintf(why, sizeof why,
                     "byte %d, row %d, layer %d is outside a surface of %lld bytes, %lld rows, %lld layers", x, y, z,
                     size[0], size[1], size[2]);
            misused(why, CALLER);
        }
        index[d] = index[d] < 0 ? 0 : last;
    }
    return object.at(index[0], index[1], index[2]);
}

}  // namespace sim

using namespace sim;

extern "C" {

cudaError_t cudaCreateTextureObject(cudaTextureObject_t* object, const cudaResourceDesc* resource,
                                    const cudaTextureDesc* texture, const cudaResourceViewDesc* view) {
    constexpr const char* call = "cudaCreateTextureObject";
    if (!object || !resource || !texture) return refuse(call, cudaErrorInvalidValue, "a null pointer", CALLER);
    if (view)
        return refuse(call, cudaErrorNotSupported, "the simulator does not support resource views: pass null", CALLER);
    Object made = {};
    made.used = true;
    made.texture = *texture;
    const char* wrong = take_resource(made, *resource);
    if (!wrong) wrong = wrong_texture(made);
    if (wrong) return refuse(call, cudaErrorInvalidValue, wrong, CALLER);
    return add(call, object, made, CALLER);
}

cudaError_t cudaDestroyTextureObject(cudaTextureObject_t object) {
    return remove("cudaDestroyTextureObject", object, false, CALLER);
}

cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t* object, const cudaResourceDesc* resource) {
    constexpr const char* call = "cudaCreateSurfaceObject";
    if (!object || !resource) return refuse(call, cudaErrorInvalidValue, "a null pointer", CALLER);
    if (resource->resType != cudaResourceTypeArray || !find_array(resource->res.array.array))
        return refuse(call, cudaErrorInvalidValue, "a surface object requires an array", CALLER);
    const cudaArray& array = *resource->res.array.array;
    if (!(array.flags & cudaArraySurfaceLoadStore))
        return refuse(call, cudaErrorInvalidValue, "the array must be created with cudaArraySurfaceLoadStore", CALLER);
    Object made = {};
    made.used = made.surface = true;
    made.memory = array;
    return add(call, object, made, CALLER);
}

cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t object) {
    return remove("cudaDestroySurfaceObject", object, true, CALLER);
}

}  // extern "C"
