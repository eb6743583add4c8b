// Copies and reductions of tensor boxes between shared and global memory by the Tensor Memory Accelerator (TMA).
#pragma once

#include <stdint.h>

#include "sim/site.h"

#pragma GCC visibility push(default)
namespace sim {

enum class Reduction : uint8_t { none, add, min, max, inc, dec, bit_and, bit_or, bit_xor };
// The first ten types have the order of CUtensorMapDataType.
enum class ElementType : uint8_t { u8, u16, u32, s32, u64, s64, f16, f32, f64, bf16 };

// `map` is a CUtensorMap. `multicast` as in bulk_load. `at` has the coordinates of the box's first element, innermost
// dimension first.
void tensor_load(Site site, void* shared, const void* map, unsigned dimensions, const int32_t* at, void* mbarrier,
                 uint32_t multicast = 0);
// Adds a store to the bulk group that the thread is filling. Unless the reduction is `none`, the values are combined
// with the contents of memory.
void tensor_store(Site site, const void* map, unsigned dimensions, const int32_t* at, const void* shared,
                  Reduction reduction);
// Checks that the prefetch instruction is valid. Prefetches have no other effect.
void tensor_prefetch(Site site, const void* map, unsigned dimensions);
void tensor_map_prefetch(Site site, const void* map);

void bulk_reduce(Site site, void* global, const void* shared, uint32_t bytes, Reduction reduction, ElementType type);

}  // namespace sim
#pragma GCC visibility pop
