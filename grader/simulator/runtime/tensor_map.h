// Decoded CUtensorMaps, and the boxes that the Tensor Memory Accelerator (TMA) copies with one.
//
// Dimension 0 is the innermost: its elements are contiguous in global and in shared memory.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "cuda.h"
#include "sim/tensor_copy.h"

namespace sim {

constexpr unsigned max_dimensions = 5;

constexpr unsigned bytes_of(ElementType type) {
    constexpr uint8_t bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2};
    return bytes[static_cast<unsigned>(type)];
}

struct TensorMap {
    char* address;
    uint64_t size[max_dimensions];    // elements of the tensor
    uint64_t stride[max_dimensions];  // bytes between consecutive elements
    uint32_t box[max_dimensions];     // box size in elements
    uint32_t step[max_dimensions];    // element stride: the box holds every step-th element of the tensor
    unsigned dimensions;
    ElementType type;
    unsigned swizzle;  // the rows of a swizzled box are 16 << swizzle bytes; 0: not swizzled
    bool fill_nan;     // elements outside the tensor are NaN, not zero
};

// Decodes the 128 bytes that cuTensorMapEncodeTiled wrote. Returns false for any other bytes.
bool decode(const CUtensorMap& encoded, TensorMap* map);

// A copy by one instruction between shared and global memory: a box of a tensor. A run of bytes is a box of one
// dimension.
struct BulkCopy {
    char* shared;  // address of the box in shared memory, with packed rows
    TensorMap map;
    int32_t at[max_dimensions];  // coordinates of the box's first element in the tensor
    Reduction reduction;

    uint32_t row_bytes() const { return map.box[0] * bytes_of(map.type); }
    uint32_t bytes() const {
        uint32_t bytes = row_bytes();
        for (unsigned d = 1; d < map.dimensions; ++d) bytes *= map.box[d];
        return bytes;
    }
};

// Describes a run of bytes as a box of one dimension; `bytes` is a multiple of the type's size.
BulkCopy run_of_bytes(char* shared, char* global, uint32_t bytes, ElementType type = ElementType::u8,
                      Reduction reduction = Reduction::none);

// Calls visit(inside, offset, global, bytes) for the rows of a box; a row that the tensor's edge cuts is visited in
// parts. `offset` is relative to the box's start in shared memory, before swizzling. `global` is valid only inside the
// tensor.
template <typename Visit>
void each_row(const BulkCopy& copy, Visit visit) {
    const TensorMap& map = copy.map;
    uint32_t row_bytes = copy.row_bytes(), bytes = copy.bytes();
    int64_t first = copy.at[0], size = static_cast<int64_t>(map.size[0]), wanted = map.box[0];
    auto clip = [&](int64_t n) { return static_cast<uint32_t>(n < 0 ? 0 : n > wanted ? wanted : n); };
    uint32_t element = bytes_of(map.type);
    uint32_t begin = clip(-first) * element, end = clip(size - first) * element;
    uint32_t index[max_dimensions] = {};
    for (uint32_t offset = 0; offset < bytes; offset += row_bytes) {
        bool inside = begin < end;
        char* global = map.address + first * static_cast<int64_t>(element);
        for (unsigned d = 1; d < map.dimensions; ++d) {
            int64_t at = copy.at[d] + static_cast<int64_t>(index[d]) * map.step[d];
            inside = inside && at >= 0 && at < static_cast<int64_t>(map.size[d]);
            global += at * static_cast<int64_t>(map.stride[d]);
        }
        uint32_t from = inside ? begin : row_bytes, to = inside ? end : row_bytes;
        if (from > 0) visit(false, offset, global, from);
        if (from < to) visit(true, offset + from, global + from, to - from);
        if (to < row_bytes) visit(false, offset + to, global + to, row_bytes - to);
        for (unsigned d = 1; d < map.dimensions && ++index[d] == map.box[d]; ++d) index[d] = 0;
    }
}

// Copies from global to shared memory, and from shared to global memory.
void perform_load(const BulkCopy& copy);
void perform_store(const BulkCopy& copy);

}  // namespace sim
