// CUDA arrays: device memory of rows of elements, one behind the other.
#pragma once

#include "sim/array_types.h"

struct cudaArray {
    char* base;
    size_t width, height,
        depth;  // in elements; height and depth as they were asked for, 0 where there is no such dimension
    unsigned flags;
    cudaChannelFormatDesc channels;
    size_t element, pitch;  // bytes of an element, of a row
    size_t rows() const { return (height ? height : 1) * (depth ? depth : 1); }
    size_t slice() const { return (height ? height : 1) * pitch; }
};

namespace sim {

// Null where there is no such array, or no more.
const cudaArray* find_array(cudaArray_const_t array);
// Bytes of an element; 0: there is no such format.
size_t element_bytes(const cudaChannelFormatDesc& channels);

}  // namespace sim
