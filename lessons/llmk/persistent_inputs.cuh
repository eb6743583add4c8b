// Day 16's persistent kernel: readers wait for the input of a matmul and store it in shared memory.
#pragma once

#include <cuda_runtime.h>

#include "llmk/persistent_cache.cuh"
#include "llmk/persistent_norm.cuh"
#include "llmk/persistent_words.cuh"

namespace llmk::persistent {

// Read pairs of words, pair i at `at(i)`, distributed over the threads: use(i, data).
template <typename At, typename Use>
__device__ __forceinline__ void read_pairs(int pairs, int reader, At at, unsigned epoch, Use use) {
    for (int first = reader; first < pairs; first += kReaders * kMostRead) {
        const int count = min(kMostRead, (pairs - first + kReaders - 1) / kReaders);
        uint2 data[kMostRead];
        await_pairs(data, [&](int i) { return at(first + i * kReaders); }, count, epoch);
#pragma unroll
        for (int i = 0; i < kMostRead; ++i) {
            if (i < count) use(first + i * kReaders, data[i]);
        }
    }
}

// Combine the results of the parts of the keys.
template <typename T>
__device__ void combine_parts(const Model<T>& model, int columns, int keys, int reader, unsigned epoch,
                              unsigned* input) {
    const int parts = parts_of(keys, model.splits), dim = model.head_dim, stride = dim + 2;
    if (parts == 1) {  // the part's values are the result
        const auto at = [&](int i) { return model.part_words + i * 2 / dim * (model.splits * stride - dim) + i * 2; };
        read_pairs(columns / 2, reader, at, epoch,
                   [&](int i, uint2 two) { input[i] = pack<T>(__uint_as_float(two.x), __uint_as_float(two.y)); });
        return;
    }
    for (int i = reader; i < columns / 2; i += kReaders) {
        const int head = i * 2 / dim, d = i * 2 % dim;
        const Word* of_head = model.part_words + head * model.splits * stride;
        float largest = -INFINITY, sum = 0;
        float2 weighted = make_float2(0, 0);
        constexpr int kPartsPerStep = 2;  // a thread reads two numbers and the log2 of the sum of each part
        for (int part = 0; part < parts; part += kPartsPerStep) {
            const int count = min(kPartsPerStep, parts - part);
            uint2 data[2 * kPartsPerStep];
            const auto at = [&](int j) { return of_head + (part + j / 2) * stride + (j % 2 == 0 ? d : dim); };
            await_pairs(data, at, 2 * count, epoch);
#pragma unroll
            for (int j = 0; j < kPartsPerStep; ++j) {
                if (j >= count) continue;
                const float size = __uint_as_float(data[2 * j + 1].x), now = fmaxf(largest, size);
                const float old_share = exp2f(largest - now), share = exp2f(size - now);
                sum = sum * old_share + share;
                weighted.x = weighted.x * old_share + share * __uint_as_float(data[2 * j].x);
                weighted.y = weighted.y * old_share + share * __uint_as_float(data[2 * j].y);
                largest = now;
            }
        }
        input[i] = pack<T>(weighted.x / sum, weighted.y / sum);
    }
}

template <typename T>
__device__ void take_input(const Model<T>& model, const Work& work, int keys, int reader, int place, unsigned epoch,
                           void* input) {
    const int columns = work.vectors * 8;
    if (work.input == kAttended) {
        combine_parts(model, columns, keys, reader, epoch, static_cast<unsigned*>(input));
    } else if (work.input == kHidden) {
        const auto at = [&](int i) { return model.hidden_words + i * 2; };
        read_pairs(columns / 4, reader, at, epoch, [&](int i, uint2 four) { static_cast<uint2*>(input)[i] = four; });
    } else {
        normalize(model, work, reader, place, epoch, static_cast<uint2*>(input));
    }
    __syncwarp();
}

}  // namespace llmk::persistent
