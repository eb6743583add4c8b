// CUDA arrays: device memory with consecutive rows of elements.
#pragma once

#include "sim/array_types.h"

struct cudaArray {
    char* base;
    // The requested size in elements. `height` is 0 for a 1D array, `depth` is 0 for a 1D or 2D array.
    size_t width, height, depth;
    unsigned flags;
    cudaChannelFormatDesc channels;
    size_t element, pitch;  // bytes of an element, bytes of a row
    size_t rows() const { return (height ? height : 1) * (depth ? depth : 1); }
    size_t slice() const { return (height ? height : 1) * pitch; }
};

namespace sim {

// Returns null when there is no such array, or when it was freed.
const cudaArray* find_array(cudaArray_const_t array);
// Returns the bytes of an element, or 0 for an invalid format.
size_t element_bytes(const cudaChannelFormatDesc& channels);

}  // namespace sim
