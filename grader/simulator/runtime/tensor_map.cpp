// Decoding of tensor maps, and copies of boxes.
#include "tensor_map.h"

#include <string.h>

#include "atomic_results.h"
#include "encoded_map.h"

namespace sim {

namespace {

// Returns where a byte of a swizzled box lies. The lowest 1, 2 or 3 bits of the number of its 16-byte piece are XORed
// with the same bits of the number of its 128-byte line. The numbers count from address 0, not from the start of the
// box.
char* swizzled(char* place, unsigned swizzle) {
    uintptr_t address = reinterpret_cast<uintptr_t>(place);
    uintptr_t mask = (uintptr_t(1) << swizzle) - 1;
    return reinterpret_cast<char*>(address ^ ((address >> 7 & mask) << 4));
}

// Calls visit(shared, bytes) for the pieces of shared memory that hold the bytes [offset, offset + bytes) of a box.
template <typename Visit>
void each_place(const BulkCopy& copy, uint32_t offset, uint32_t bytes, Visit visit) {
    if (!copy.map.swizzle) {
        visit(copy.shared + offset, bytes);
        return;
    }
    while (bytes > 0) {
        uint32_t part = 16 - offset % 16 < bytes ? 16 - offset % 16 : bytes;
        visit(swizzled(copy.shared + offset, copy.map.swizzle), part);
        offset += part;
        bytes -= part;
    }
}

// The NaN is undocumented; an H200 writes 0x7ff7 repeatedly, whatever the type.
void fill(const TensorMap& map, char* to, uint32_t bytes) {
    memset(to, 0, bytes);
    if (!map.fill_nan) return;
    for (uint32_t i = 0; i < bytes; ++i) to[i] = static_cast<char>(i % 2 ? 0x7f : 0xf7);
}

// In the order of Reduction; without `none`.
constexpr AtomicOp operations[] = {AtomicOp::add,       AtomicOp::min,     AtomicOp::max,    AtomicOp::increment,
                                   AtomicOp::decrement, AtomicOp::bit_and, AtomicOp::bit_or, AtomicOp::bit_xor};

// Updates an element of global memory atomically, because other blocks may reduce into the same element.
template <typename Bits>
void update(Bits (*result)(AtomicOp, Bits, Bits), AtomicOp op, char* global, const char* shared) {
    Bits operand, before;
    memcpy(&operand, shared, sizeof operand);
    auto* place = reinterpret_cast<Bits*>(global);
    __atomic_load(place, &before, __ATOMIC_RELAXED);
    Bits after = result(op, before, operand);
    while (!__atomic_compare_exchange(place, &before, &after, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        after = result(op, before, operand);
}

void reduce_element(ElementType type, Reduction reduction, char* global, const char* shared) {
    AtomicOp op = operations[static_cast<int>(reduction) - 1];
    switch (type) {
        case ElementType::u32:
            return update(integer_result<uint32_t, uint32_t>, op, global, shared);
        case ElementType::s32:
            return update(integer_result<int32_t, uint32_t>, op, global, shared);
        case ElementType::u64:
            return update(integer_result<uint64_t, uint64_t>, op, global, shared);
        case ElementType::s64:
            return update(integer_result<int64_t, uint64_t>, op, global, shared);
        case ElementType::f32:
            return update(float_result<float, uint32_t>, op, global, shared);
        case ElementType::f64:
            return update(float_result<double, uint64_t>, op, global, shared);
        case ElementType::f16:
            return update(small_result<F16>, op, global, shared);
        case ElementType::bf16:
            return update(small_result<BF16>, op, global, shared);
        default:
            return;
    }
}

}  // namespace

bool decode(const CUtensorMap& encoded, TensorMap* map) {
    EncodedMap e;
    memcpy(&e, &encoded, sizeof e);
    if (e.checksum != checksum(e)) return false;
    *map = {};
    map->address = reinterpret_cast<char*>(static_cast<uintptr_t>(e.address));
    map->dimensions = e.dimensions;
    map->type = static_cast<ElementType>(e.type);
    map->swizzle = e.swizzle;
    map->fill_nan = e.fill_nan;
    for (unsigned d = 0; d < e.dimensions; ++d) {
        map->size[d] = uint64_t(e.last[d]) + 1;
        map->stride[d] = d ? e.stride[d - 1] : bytes_of(map->type);
        map->step[d] = d ? e.step[d] : 1;
        map->box[d] = (e.box[d] + map->step[d] - 1) / map->step[d];
    }
    return true;
}

BulkCopy run_of_bytes(char* shared, char* global, uint32_t bytes, ElementType type, Reduction reduction) {
    BulkCopy copy = {};
    copy.shared = shared;
    copy.map.address = global;
    copy.map.dimensions = 1;
    copy.map.type = type;
    copy.map.stride[0] = bytes_of(type);
    copy.map.size[0] = copy.map.box[0] = bytes / bytes_of(type);
    copy.map.step[0] = 1;
    copy.reduction = reduction;
    return copy;
}

void perform_load(const BulkCopy& copy) {
    each_row(copy, [&copy](bool inside, uint32_t offset, const char* global, uint32_t bytes) {
        each_place(copy, offset, bytes, [&](char* shared, uint32_t part) {
            if (!inside) {
                fill(copy.map, shared, part);
                return;
            }
            memcpy(shared, global, part);
            global += part;
        });
    });
}

void perform_store(const BulkCopy& copy) {
    unsigned size = bytes_of(copy.map.type);
    each_row(copy, [&](bool inside, uint32_t offset, char* global, uint32_t bytes) {
        if (!inside) return;
        each_place(copy, offset, bytes, [&](const char* shared, uint32_t part) {
            if (copy.reduction == Reduction::none) {
                memcpy(global, shared, part);
            } else {
                for (uint32_t i = 0; i < part; i += size)
                    reduce_element(copy.map.type, copy.reduction, global + i, shared + i);
            }
            global += part;
        });
    });
}

}  // namespace sim
