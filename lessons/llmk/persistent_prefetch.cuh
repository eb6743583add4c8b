// Day 16's persistent kernel: readers prefetch for later phases, and writers begin a token with its embedding.
#pragma once

#include <cuda_runtime.h>

#include "llmk/persistent_cache.cuh"
#include "llmk/persistent_words.cuh"
#include "llmk/persistent_work.cuh"

namespace llmk::persistent {

// Prefetch parameters of later phases that would otherwise come from memory: weights and biases of norms, biases.
template <typename T>
__device__ void prefetch_for(const Model<T>& model, const Work& work, int reader) {
    constexpr int kLine = 32;  // floats in 128 bytes
    if (work.kind != kLinear || work.rows == 0) return;
    const int at = reader * kLine;
    if (work.norm >= 0 && at < model.width) prefetch(model.parameters + work.norm + at);
    if (work.norm_bias >= 0 && at < model.width) prefetch(model.parameters + work.norm_bias + at);
    if (work.bias >= 0 && at < work.rows + kLine) {
        prefetch(model.parameters + work.bias + min(work.first + at, work.first + work.rows - 1));
    }
}

// Prefetch the keys and values that this block will need to the L2 cache.
template <typename T>
__device__ void prefetch_keys(const Model<T>& model, const Work& work, int keys, int reader) {
    const int parts = parts_of(keys, model.splits), each = keys_per_part(keys, model.splits), size = model.page_size;
    for (int task = blockIdx.x; task < model.heads * parts; task += gridDim.x) {
        const int kv_head = task / parts / (model.heads / model.kv_heads), first = task % parts * each;
        for (int key = first / size * size + reader * size; key < min(first + each, keys); key += kReaders * size) {
            const long long row = cache_row(model, work.layer, page_of(model, key), kv_head, key);
            for (const T* rows : {model.keys + row, model.values + row}) {
                asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(rows),
                             "r"(size * model.head_dim * static_cast<int>(sizeof(T)))
                             : "memory");
            }
        }
    }
}

// Set x to the token's row of the embedding table. Each writer thread stores the elements that it will add to later.
template <typename T>
__device__ void embed(const Model<T>& model, const Work& work, long long table, int writer, int position,
                      unsigned epoch) {
    const T* from = model.weights + table + static_cast<long long>(model.tokens[position]) * model.width + work.first;
    for (int i = writer * 2; i < work.rows; i += kWriters * 2) {
        const int row = work.first + i;
        const float2 x = make_float2(static_cast<float>(from[i]), static_cast<float>(from[i + 1]));
        *reinterpret_cast<float2*>(model.x + row) = x;
        publish(model.x_words + row / 2, pack<T>(x.x, x.y), epoch);
    }
}

}  // namespace llmk::persistent
