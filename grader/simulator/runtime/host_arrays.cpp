// cudaMallocArray and related calls, and copies of two and three dimensions.
#include <pthread.h>
#include <stdio.h>

#include "arrays.h"
#include "host_memory.h"
#include "submission_sandbox/sandbox.h"
#include "refuse.h"

#define CALLER __builtin_return_address(0)

namespace sim {

namespace {

constexpr size_t max_arrays = 1024, pitch_multiple = 512;
constexpr const char* no_array =
    "the array was not created by cudaMallocArray or cudaMalloc3DArray, or was freed already";

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
cudaArray arrays[max_arrays];  // unused slots have no memory

cudaError_t invalid(const char* call, const char* why, const void* caller) {
    return refuse(call, cudaErrorInvalidValue, why, caller);
}

cudaError_t make_array(const char* call, cudaArray_t* array, const cudaChannelFormatDesc* channels, cudaExtent extent,
                       unsigned flags, const void* caller) {
    size_t element = channels ? element_bytes(*channels) : 0;
    if (!array || !element)
        return invalid(call, "invalid channel format: use one, two or four channels of 8, 16 or 32 bits", caller);
    if (!extent.width) return invalid(call, "the array must be at least one element wide", caller);
    if (flags & (cudaArrayCubemap | cudaArrayTextureGather))
        return refuse(call, cudaErrorNotSupported, "the simulator does not support cube maps and texture gather",
                      caller);
    cudaArray made = {nullptr, extent.width, extent.height, extent.depth,
                      flags,   *channels,    element,       extent.width * element};
    *sandbox::result(array) = nullptr;
    void* base = nullptr;
    if (cudaError_t error = allocate_memory(call, events::MemoryKind::device, &base, made.rows() * made.pitch, caller))
        return error;
    made.base = static_cast<char*>(base);
    pthread_mutex_lock(&lock);
    size_t i = 0;
    while (i < max_arrays && arrays[i].base) ++i;
    if (i < max_arrays) arrays[i] = made;
    pthread_mutex_unlock(&lock);
    if (i == max_arrays)
        return refuse(call, cudaErrorMemoryAllocation,
                      "too many arrays: the simulator has at most 1,024 at a time, so free some first", caller);
    *array = &arrays[i];
    return cudaSuccess;
}

// Returns the address of byte `x` of a row in an array. Returns null if a rectangle of `width` bytes and `height` rows
// that begins there exceeds the array.
char* place_in(cudaArray_const_t wanted, size_t x, size_t row, size_t width, size_t height) {
    const cudaArray* array = find_array(wanted);
    if (!array || x > array->pitch || width > array->pitch - x || row > array->rows() || height > array->rows() - row)
        return nullptr;
    return array->base + row * array->pitch + x;
}

cudaError_t to_array(const char* call, cudaArray_t to, size_t x, size_t y, const void* from, size_t pitch, size_t width,
                     size_t height, cudaMemcpyKind kind, cudaStream_t stream, bool async, const void* caller) {
    char* place = place_in(to, x, y, width, height);
    if (!place) return invalid(call, "there is no such array, or the rectangle exceeds it", caller);
    return copy_rows(call, {place, to->pitch, from, pitch, width, height, 0}, kind, stream, async, caller);
}

cudaError_t from_array(const char* call, void* to, size_t pitch, cudaArray_const_t from, size_t x, size_t y,
                       size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t stream, bool async,
                       const void* caller) {
    char* place = place_in(from, x, y, width, height);
    if (!place) return invalid(call, "there is no such array, or the rectangle exceeds it", caller);
    return copy_rows(call, {to, pitch, place, from->pitch, width, height, 0}, kind, stream, async, caller);
}

// The source or the destination of a cudaMemcpy3D.
struct Box {
    char* base;
    size_t pitch, slice;
};

bool find_box(Box* box, const cudaArray* array, const cudaPos& at, const cudaPitchedPtr& pointer, size_t width,
              const cudaExtent& extent) {
    if (array) {
        const cudaArray* known = find_array(array);
        if (!known || at.x * known->element + width > known->pitch) return false;
        if (at.y + extent.height > (known->height ? known->height : 1)) return false;
        if (at.z + extent.depth > (known->depth ? known->depth : 1)) return false;
        *box = {known->base + at.z * known->slice() + at.y * known->pitch + at.x * known->element, known->pitch,
                known->slice()};
        return true;
    }
    size_t slice = pointer.pitch * pointer.ysize;
    *box = {static_cast<char*>(pointer.ptr) + at.z * slice + at.y * pointer.pitch + at.x, pointer.pitch, slice};
    return pointer.ptr && at.x + width <= pointer.pitch && (extent.depth <= 1 || at.y + extent.height <= pointer.ysize);
}

cudaError_t fill_box(const char* call, const cudaPitchedPtr& pointer, int value, const cudaExtent& extent,
                     cudaStream_t stream, const void* caller) {
    cudaError_t error = cudaSuccess;
    for (size_t z = 0; z < extent.depth && !error; ++z) {
        void* slice = static_cast<char*>(pointer.ptr) + z * pointer.pitch * pointer.ysize;
        error = fill_rows(call, {slice, pointer.pitch, nullptr, 0, extent.width, extent.height, value}, stream, caller);
    }
    return error;
}

}  // namespace

cudaError_t copy_box(const char* call, const cudaMemcpy3DParms* copy, cudaStream_t stream, bool async,
                     const void* caller) {
    if (!copy || !copy->srcArray == !copy->srcPtr.ptr || !copy->dstArray == !copy->dstPtr.ptr)
        return invalid(call, "set either the array or the pointer of the source and of the destination, not both",
                       caller);
    const cudaArray* array = find_array(copy->srcArray ? copy->srcArray : copy->dstArray);
    if ((copy->srcArray || copy->dstArray) && !array) return invalid(call, no_array, caller);
    size_t width = copy->extent.width * (array ? array->element : 1);
    Box from, to;
    if (!find_box(&from, copy->srcArray, copy->srcPos, copy->srcPtr, width, copy->extent))
        return invalid(call, "the box exceeds the source", caller);
    if (!find_box(&to, copy->dstArray, copy->dstPos, copy->dstPtr, width, copy->extent))
        return invalid(call, "the box exceeds the destination", caller);
    cudaError_t error = cudaSuccess;
    for (size_t z = 0; z < copy->extent.depth && !error; ++z) {
        Rows rows = {to.base + z * to.slice, to.pitch, from.base + z * from.slice, from.pitch, width,
                     copy->extent.height,    0};
        error = copy_rows(call, rows, copy->kind, stream, async, caller);
    }
    return error;
}

const cudaArray* find_array(cudaArray_const_t array) {
    bool inside = array >= arrays && array < arrays + max_arrays;
    return inside && array == arrays + (array - arrays) && array->base ? array : nullptr;
}

size_t element_bytes(const cudaChannelFormatDesc& channels) {
    int count = channels.w ? 4 : channels.z ? 3 : channels.y ? 2 : 1;
    bool same = (count < 2 || channels.y == channels.x) && (count < 4 || channels.z == channels.x) &&
                (count < 4 || channels.w == channels.x);
    bool known = channels.x == 32 || channels.x == 16 || (channels.x == 8 && channels.f != cudaChannelFormatKindFloat);
    bool kind = channels.f >= cudaChannelFormatKindSigned && channels.f <= cudaChannelFormatKindFloat;
    return same && known && kind && count != 3 ? static_cast<size_t>(count * channels.x / 8) : 0;
}

}  // namespace sim

using namespace sim;

extern "C" {

cudaError_t cudaMallocArray(cudaArray_t* array, const cudaChannelFormatDesc* channels, size_t width, size_t height,
                            unsigned int flags) {
    return make_array("cudaMallocArray", array, channels, {width, height, 0}, flags, CALLER);
}

cudaError_t cudaMalloc3DArray(cudaArray_t* array, const cudaChannelFormatDesc* channels, cudaExtent extent,
                              unsigned int flags) {
    return make_array("cudaMalloc3DArray", array, channels, extent, flags, CALLER);
}

cudaError_t cudaFreeArray(cudaArray_t array) {
    if (!array) return cudaSuccess;
    if (!find_array(array)) return invalid("cudaFreeArray", no_array, CALLER);
    cudaError_t error = release_memory("cudaFreeArray", array->base, CALLER);
    array->base = nullptr;
    return error;
}

cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc* channels, cudaExtent* extent, unsigned int* flags,
                             cudaArray_t array) {
    if (!find_array(array)) return invalid("cudaArrayGetInfo", no_array, CALLER);
    if (channels) *sandbox::result(channels) = array->channels;
    if (extent) *sandbox::result(extent) = {array->width, array->height, array->depth};
    if (flags) *sandbox::result(flags) = array->flags;
    return cudaSuccess;
}

cudaError_t cudaGetChannelDesc(cudaChannelFormatDesc* channels, cudaArray_const_t array) {
    if (!find_array(array)) return invalid("cudaGetChannelDesc", no_array, CALLER);
    *sandbox::result(channels) = array->channels;
    return cudaSuccess;
}

// Like CUDA, this function treats the rows of the array as contiguous.
cudaError_t cudaMemcpyToArray(cudaArray_t to, size_t x, size_t y, const void* from, size_t bytes, cudaMemcpyKind kind) {
    char* place = place_in(to, x, y, 0, 0);
    if (!place || bytes > static_cast<size_t>(to->base + to->rows() * to->pitch - place))
        return invalid("cudaMemcpyToArray", "the byte count exceeds the array", CALLER);
    return copy_rows("cudaMemcpyToArray", {place, bytes, from, bytes, bytes, 1, 0}, kind, nullptr, false, CALLER);
}

cudaError_t cudaMemcpyFromArray(void* to, cudaArray_const_t from, size_t x, size_t y, size_t bytes,
                                cudaMemcpyKind kind) {
    char* place = place_in(from, x, y, 0, 0);
    if (!place || bytes > static_cast<size_t>(from->base + from->rows() * from->pitch - place))
        return invalid("cudaMemcpyFromArray", "the byte count exceeds the array", CALLER);
    return copy_rows("cudaMemcpyFromArray", {to, bytes, place, bytes, bytes, 1, 0}, kind, nullptr, false, CALLER);
}

cudaError_t cudaMemcpy2DToArray(cudaArray_t to, size_t x, size_t y, const void* from, size_t pitch, size_t width,
                                size_t height, cudaMemcpyKind kind) {
    return to_array("cudaMemcpy2DToArray", to, x, y, from, pitch, width, height, kind, nullptr, false, CALLER);
}

cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t to, size_t x, size_t y, const void* from, size_t pitch, size_t width,
                                     size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
    return to_array("cudaMemcpy2DToArrayAsync", to, x, y, from, pitch, width, height, kind, stream, true, CALLER);
}

cudaError_t cudaMemcpy2DFromArray(void* to, size_t pitch, cudaArray_const_t from, size_t x, size_t y, size_t width,
                                  size_t height, cudaMemcpyKind kind) {
    return from_array("cudaMemcpy2DFromArray", to, pitch, from, x, y, width, height, kind, nullptr, false, CALLER);
}

cudaError_t cudaMemcpy2DFromArrayAsync(void* to, size_t pitch, cudaArray_const_t from, size_t x, size_t y, size_t width,
                                       size_t height, cudaMemcpyKind kind, cudaStream_t stream) {
    return from_array("cudaMemcpy2DFromArrayAsync", to, pitch, from, x, y, width, height, kind, stream, true, CALLER);
}

cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* copy) {
    return copy_box("cudaMemcpy3D", copy, nullptr, false, CALLER);
}

cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* copy, cudaStream_t stream) {
    return copy_box("cudaMemcpy3DAsync", copy, stream, true, CALLER);
}

cudaError_t cudaMalloc3D(cudaPitchedPtr* pointer, cudaExtent extent) {
    size_t pitch = (extent.width + pitch_multiple - 1) / pitch_multiple * pitch_multiple;
    void* base = nullptr;
    cudaError_t error = allocate_memory("cudaMalloc3D", events::MemoryKind::device, &base,
                                        pitch * extent.height * extent.depth, CALLER);
    *sandbox::result(pointer) = {base, pitch, extent.width, extent.height};
    return error;
}

cudaError_t cudaMemset3D(cudaPitchedPtr pointer, int value, cudaExtent extent) {
    return fill_box("cudaMemset3D", pointer, value, extent, nullptr, CALLER);
}

cudaError_t cudaMemset3DAsync(cudaPitchedPtr pointer, int value, cudaExtent extent, cudaStream_t stream) {
    return fill_box("cudaMemset3DAsync", pointer, value, extent, stream, CALLER);
}

}  // extern "C"
