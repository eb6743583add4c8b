// Copies of tensor boxes: PTX's requirements on their operands. tensor_map.h describes boxes.
#include "sim/tensor_copy.h"

#include "async_operations.h"
#include "fiber.h"
#include "misuse.h"
#include "scheduler.h"
#include "sim/mbarrier.h"
#include "sim/shared.h"

#define CALLER __builtin_return_address(0)

namespace sim {

namespace {

bool is_parameter(const Launch& launch, const void* data) {
    const char* byte = static_cast<const char*>(data);
    return byte >= launch.parameters && byte < launch.parameters + launch.parameter_bytes;
}

TensorMap the_map(Thread& self, Site site, const void* data) {
    if (!is_parameter(*self.block->launch, data) && !is_global(data)) {
        misused(self, site,
                "the tensor map must be a const __grid_constant__ kernel parameter, a __constant__ variable, or in "
                "global memory");
    }
    if (reinterpret_cast<uintptr_t>(data) % 64)
        misused(self, site, "misaligned tensor map: its address must be a multiple of 64 bytes");
    TensorMap map;
    if (!decode(*static_cast<const CUtensorMap*>(data), &map))
        misused(self, site, "invalid tensor map: it was not written by cuTensorMapEncodeTiled");
    return map;
}

TensorMap map_of(Thread& self, Site site, const void* data, unsigned dimensions) {
    TensorMap map = the_map(self, site, data);
    if (map.dimensions != dimensions) {
        static constexpr const char* said[] = {"the tensor map has 1 dimension", "the tensor map has 2 dimensions",
                                               "the tensor map has 3 dimensions", "the tensor map has 4 dimensions",
                                               "the tensor map has 5 dimensions"};
        misused(self, site, said[map.dimensions - 1]);
    }
    return map;
}

BulkCopy box(Thread& self, Site site, const void* shared, const void* map, unsigned dimensions, const int32_t* at,
             Reduction reduction) {
    BulkCopy copy = {
        const_cast<char*>(static_cast<const char*>(shared)), map_of(self, site, map, dimensions), {}, reduction};
    for (unsigned d = 0; d < dimensions; ++d) copy.at[d] = at[d];
    if (!shared_owner(*self.block, shared))
        misused(self, site, "the shared-memory operand of the tensor copy is not in shared memory");
    if (reinterpret_cast<uintptr_t>(shared) % 128)
        misused(self, site, "misaligned tensor copy: the shared-memory address must be a multiple of 128 bytes");
    if (declared_alignment(shared) < 128)
        misused(self, site,
                "misaligned tensor copy: the shared-memory address must be a multiple of 128 bytes: declare the array "
                "alignas(128)");
    // The documentation does not require that the first coordinate is at a multiple of 16 bytes. But if it is not, an
    // H200 ends the kernel with the error "illegal instruction".
    if (at[0] * static_cast<int64_t>(bytes_of(copy.map.type)) % 16)
        misused(self, site, "misaligned box: its first coordinate must be at a multiple of 16 bytes in the row");
    return copy;
}

// Returns whether PTX has this reduction for this type (PTX ISA, "cp.reduce.async.bulk").
bool exists(Reduction reduction, ElementType type) {
    switch (reduction) {
        case Reduction::none:
            return true;
        case Reduction::add:
            return type != ElementType::u8 && type != ElementType::u16 && type != ElementType::s64;
        case Reduction::min:
        case Reduction::max:
            return type != ElementType::u8 && type != ElementType::u16 && type != ElementType::f32 &&
                   type != ElementType::f64;
        case Reduction::inc:
        case Reduction::dec:
            return type == ElementType::u32;
        default:  // PTX lists s64 too, but an H200 ends the kernel with an illegal instruction
            return type >= ElementType::u32 && type <= ElementType::u64;
    }
}

}  // namespace

void tensor_load(Site site, void* shared, const void* map, unsigned dimensions, const int32_t* at, void* mbarrier,
                 uint32_t multicast) {
    Thread* self = enter(site, CALLER);
    if (!self) return;
    start_load(*self, site, box(*self, site, shared, map, dimensions, at, Reduction::none), mbarrier, multicast);
}

void tensor_store(Site site, const void* map, unsigned dimensions, const int32_t* at, const void* shared,
                  Reduction reduction) {
    Thread* self = enter(site, CALLER);
    if (!self) return;
    BulkCopy copy = box(*self, site, shared, map, dimensions, at, reduction);
    if (!exists(reduction, copy.map.type))
        misused(*self, site,
                "cp.reduce.async.bulk.tensor does not support this reduction for the tensor map's element type");
    // The CUDA C++ Programming Guide allows negative coordinates for loads only. For a store with one, an H200 ends the
    // kernel with the error "illegal instruction".
    for (unsigned d = 0; d < dimensions; ++d) {
        if (at[d] < 0)
            misused(*self, site, "negative coordinate in a tensor store: boxes of stores must begin inside the tensor");
    }
    // Undocumented: an H200 writes rows in units of 16 bytes. So a row is written up to the next multiple of 16 bytes
    // after its end.
    uint64_t per_piece = 16 / bytes_of(copy.map.type);
    copy.map.size[0] = (copy.map.size[0] + per_piece - 1) / per_piece * per_piece;
    start_store(*self, copy);
}

void tensor_prefetch(Site site, const void* map, unsigned dimensions) {
    Thread* self = enter(site, CALLER);
    if (self) map_of(*self, site, map, dimensions);
}

void tensor_map_prefetch(Site site, const void* map) {
    Thread* self = enter(site, CALLER);
    if (self) the_map(*self, site, map);
}

void bulk_reduce(Site site, void* global, const void* shared, uint32_t bytes, Reduction reduction, ElementType type) {
    Thread* self = enter(site, CALLER);
    if (!self) return;
    check_bulk_copy(*self, site, shared, global, bytes);
    char* from = const_cast<char*>(static_cast<const char*>(shared));
    start_store(*self, run_of_bytes(from, static_cast<char*>(global), bytes, type, reduction));
}

}  // namespace sim
