// What a CUtensorMap says, and the boxes that the copy engine (TMA) moves with one.
//
// Dimension 0 is the innermost: its elements lie side by side, in global and in shared memory.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "cuda.h"
#include "sim/tensor_copy.h"

namespace sim {

constexpr unsigned most_dimensions = 5;

constexpr unsigned bytes_of(ElementType type) {
    constexpr uint8_t bytes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2};
    return bytes[static_cast<unsigned>(type)];
}

struct TensorMap {
    char* address;
    uint64_t size[most_dimensions];    // elements of the tensor
    uint64_t stride[most_dimensions];  // bytes from one element to the next
    uint32_t box[most_dimensions];     // elements that a box takes
    uint32_t step[most_dimensions];    // every so manieth element
    unsigned dimensions;
    ElementType type;
    unsigned swizzle;  // the rows of a swizzled box are 16 << swizzle bytes; 0: not swizzled
    bool fill_nan;     // what lies outside of the tensor is NaN, not zero
};

// From the 128 bytes that cuTensorMapEncodeTiled has written. False when they are none of its own.
bool decode(const CUtensorMap& encoded, TensorMap* map);

// What one instruction moves between shared and global memory: a box of a tensor. A run of bytes is a box of one
// dimension.
struct BulkCopy {
    char* shared;  // where the box lies there, its rows packed
    TensorMap map;
    int32_t at[most_dimensions];  // of the box's first element in the tensor
    Reduction reduction;

    uint32_t row_bytes() const { return map.box[0] * bytes_of(map.type); }
    uint32_t bytes() const {
        uint32_t bytes = row_bytes();
        for (unsigned d = 1; d < map.dimensions; ++d) bytes *= map.box[d];
        return bytes;
    }
};

// A run of bytes as such a box; their number is a multiple of the type's size.
BulkCopy run_of_bytes(char* shared, char* global, uint32_t bytes, ElementType type = ElementType::u8,
                      Reduction reduction = Reduction::none);

// Calls visit(inside, offset, global, bytes) for the rows of a box, and for a row that the tensor's edge cuts, for its
// parts: `offset` from the box's begin in shared memory, before swizzling; `global` has a meaning inside the tensor alone.
template <typename Visit>
void each_row(const BulkCopy& copy, Visit visit) {
    const TensorMap& map = copy.map;
    uint32_t row_bytes = copy.row_bytes(), bytes = copy.bytes();
    int64_t first = copy.at[0], size = static_cast<int64_t>(map.size[0]), wanted = map.box[0];
    auto clip = [&](int64_t n) { return static_cast<uint32_t>(n < 0 ? 0 : n > wanted ? wanted : n); };
    uint32_t element = bytes_of(map.type);
    uint32_t begin = clip(-first) * element, end = clip(size - first) * element;
    uint32_t index[most_dimensions] = {};
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

// From global to shared memory, or the other way.
void perform_load(const BulkCopy& copy);
void perform_store(const BulkCopy& copy);

}  // namespace sim
