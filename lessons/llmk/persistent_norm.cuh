// Day 16's persistent kernel: readers normalize the residual stream x for a matmul.
#pragma once

#include <cuda_runtime.h>

#include "llmk/mbarrier.cuh"
#include "llmk/persistent_words.cuh"
#include "llmk/persistent_work.cuh"
#include "llmk/reduce.cuh"

namespace llmk::persistent {

// Return the sum over all readers. Calls alternate between two buffers, so no second barrier is needed.
__device__ __forceinline__ float sum_of_readers(float mine, int reader, int place) {
    __shared__ float partial[4][kReaders / 32];
    mine = llmk::warp_sum(mine);
    if (reader % 32 == 0) partial[place][reader / 32] = mine;
    llmk::bar_sync(kReadersBarrier, kReaders);
    float sum = 0;
#pragma unroll
    for (int warp = 0; warp < kReaders / 32; ++warp) sum += partial[place][warp];
    return sum;
}

template <typename T>
__device__ void normalize(const Model<T>& model, const Work& work, int reader, int place, unsigned epoch,
                          uint2* input) {
    const int pairs = model.width / 4,
              count = max(0, (pairs - reader + kReaders - 1) / kReaders);  // count: pairs of this reader
    float4 weight[kMostPairs], bias[kMostPairs], x[kMostPairs];
#pragma unroll
    for (int i = 0; i < kMostPairs; ++i) {  // loaded before x is complete
        const int column = (reader + i * kReaders) * 4;
        weight[i] = bias[i] = x[i] = make_float4(0, 0, 0, 0);
        if (i >= count) continue;
        weight[i] = *reinterpret_cast<const float4*>(model.parameters + work.norm + column);
        if (work.norm_bias >= 0) bias[i] = *reinterpret_cast<const float4*>(model.parameters + work.norm_bias + column);
    }
    uint2 bits[kMostPairs];
    await_pairs(bits, [&](int i) { return model.x_words + (reader + i * kReaders) * 2; }, count, epoch);
    float sum = 0, squares = 0, mean = 0;
#pragma unroll
    for (int i = 0; i < kMostPairs; ++i) {
        if (i < count) {
            const float2 a = unpack_two<T>(bits[i].x), b = unpack_two<T>(bits[i].y);
            x[i] = make_float4(a.x, a.y, b.x, b.y);
        }
        sum += (x[i].x + x[i].y) + (x[i].z + x[i].w);
    }
    if (work.input == kLayerNormOfX) mean = sum_of_readers(sum, reader, 2 * place) / model.width;
#pragma unroll
    for (int i = 0; i < kMostPairs; ++i) {
        if (i >= count) continue;
        x[i] = make_float4(x[i].x - mean, x[i].y - mean, x[i].z - mean, x[i].w - mean);
        squares += (x[i].x * x[i].x + x[i].y * x[i].y) + (x[i].z * x[i].z + x[i].w * x[i].w);
    }
    const float scale = rsqrtf(sum_of_readers(squares, reader, 2 * place + 1) / model.width + model.epsilon);
#pragma unroll
    for (int i = 0; i < kMostPairs; ++i) {
        if (i >= count) continue;
        const float4 w = weight[i], b = bias[i];
        input[reader + i * kReaders] = make_uint2(pack<T>(x[i].x * scale * w.x + b.x, x[i].y * scale * w.y + b.y),
                                                  pack<T>(x[i].z * scale * w.z + b.z, x[i].w * scale * w.w + b.w));
    }
}

}  // namespace llmk::persistent
