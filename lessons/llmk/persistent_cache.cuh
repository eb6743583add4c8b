// Day 16's persistent kernel: places in the cache of keys and values, and how blocks divide the keys of a head.
#pragma once

#include <cuda_runtime.h>

#include "llmk/persistent_model.cuh"

namespace llmk::persistent {

// Return the page of a position.
template <typename T>
__device__ __forceinline__ int page_of(const Model<T>& model, int position) {
    return model.table[position >> (31 - __clz(model.page_size))];
}

// Return the offset of a position's row in the cache of keys or values.
template <typename T>
__device__ __forceinline__ long long cache_row(const Model<T>& model, long long layer, int page, int kv_head,
                                               int position) {
    return (((layer * model.pages + page) * model.kv_heads + kv_head) * model.page_size +
            (position & (model.page_size - 1))) *
           model.head_dim;
}

__device__ __forceinline__ int keys_per_part(int keys, int splits) {
    return max(kSmallestPart, (keys + splits - 1) / splits);
}

// Return the number of parts of the keys, all of them non-empty.
__device__ __forceinline__ int parts_of(int keys, int splits) {
    const int each = keys_per_part(keys, splits);
    return (keys + each - 1) / each;
}

}  // namespace llmk::persistent
