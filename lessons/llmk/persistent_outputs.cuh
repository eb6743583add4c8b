// Day 16's persistent kernel: writers apply RoPE, biases, activations and the residual, and publish the results.
#pragma once

#include <cuda_runtime.h>

#include <climits>

#include "llmk/mbarrier.cuh"
#include "llmk/persistent_cache.cuh"
#include "llmk/persistent_words.cuh"
#include "llmk/persistent_work.cuh"
#include "llmk/reduce.cuh"

namespace llmk::persistent {

__device__ __forceinline__ float gelu(float x) { return 0.5f * x * (1.0f + erff(x * 0.70710678f)); }
__device__ __forceinline__ float silu(float x) { return x / (1.0f + __expf(-x)); }

// Encode a logit and its row in one integer with the order of the floats; of equal logits the lowest row is the
// largest.
__device__ __forceinline__ Word rank_of(float logit, int row) {
    const unsigned bits = __float_as_uint(logit);
    const unsigned ordered = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    return static_cast<Word>(ordered) << 32 | (UINT_MAX - static_cast<unsigned>(row));
}

// Store two rows of queries, keys or values. Rows 2 p and 2 p + 1 of a head are columns p and p + rotary / 2, which
// RoPE combines, or columns that are not rotated.
template <typename T>
__device__ void give_query_key_value(const Model<T>& model, const Work& work, const float2* angle, int row, float2 two,
                                     int position, int page, unsigned epoch) {
    const int head = row / model.head_dim, pair = row % model.head_dim / 2, half = model.rotary / 2;
    const bool turned = pair < half;
    const int first = turned ? pair : 2 * pair, second = turned ? pair + half : 2 * pair + 1;
    if (turned && head < model.heads + model.kv_heads) {
        const float2 a = angle[pair];
        two = make_float2(two.x * a.x - two.y * a.y, two.y * a.x + two.x * a.y);
    }
    const T rounded[2] = {static_cast<T>(two.x), static_cast<T>(two.y)};
    if (head >= model.heads) two = make_float2(static_cast<float>(rounded[0]), static_cast<float>(rounded[1]));
    Word* words = model.qkv_words + head * model.head_dim;
    publish(words + first, two.x, epoch);
    publish(words + second, two.y, epoch);
    if (head >= model.heads) {  // store the key or value for later tokens
        const int other = head - model.heads;
        T* to = (other < model.kv_heads ? model.keys : model.values) +
                cache_row(model, work.layer, page, other % model.kv_heads, position);
        to[first] = rounded[0];
        to[second] = rounded[1];
    }
}

// The addends of a writer's two rows: the bias, and x. They are loaded before the sums are complete.
struct Known {
    float2 bias, x;
};
template <typename T>
__device__ Known fetch_known(const Model<T>& model, const Work& work, int i) {
    const int row = work.first + max(0, min(i, work.rows - 2));
    const bool biased = work.bias >= 0;
    // Both loads are unconditional; the caller ignores an addend that does not apply.
    return {*reinterpret_cast<const float2*>(model.parameters + (biased ? work.bias + row : 0)),
            *reinterpret_cast<const float2*>(work.output == kAddToX ? model.x + row : model.parameters)};
}

// Process the rows of one writer thread. The threads take groups of `row_group` neighboring rows in turn.
template <typename T>
__device__ void give_output(const Model<T>& model, const Work& work, const Shared& shared, Turn turn, int writer,
                            int position, int page, unsigned epoch) {
    const int parts = 1 << work.shift;
    int i = writer * work.row_group;
    Known known = {};
    if (i < work.rows && work.output != kLogits) known = fetch_known(model, work, i);
    llmk::mbarrier_wait_parity(shared.summed + turn.place, turn.parity);
    auto value = [&](int row) {  // row: counted from the block's first row
        const float* of_parts = shared.sums_of(turn.place) + (row << work.shift);
        float sum = 0;
#pragma unroll
        for (int part = 0; part < kWarps; ++part) {
            if (part < parts) sum += of_parts[part];
        }
        return sum;
    };
    if (work.output == kLogits) {
        Word best = 0;
        for (; i < work.rows; i += kWriters) {
            const float logit = value(i);
            model.logits[work.first + i] = logit;
            best = max(best, rank_of(logit, work.first + i));
        }
#pragma unroll
        for (int distance = 16; distance > 0; distance /= 2) {
            best = max(best, __shfl_xor_sync(llmk::kAllLanes, best, distance));
        }
        if (writer % 32 == 0 && best > 0) atomicMax(model.best, best);
        return;
    }
    while (i < work.rows) {
        const int row = work.first + i;
        float2 two = make_float2(value(i), value(i + 1));
        if (work.bias >= 0) two = make_float2(two.x + known.bias.x, two.y + known.bias.y);
        if (work.output == kGateUp) {
            publish(model.hidden_words + row / 4, pack<T>(silu(two.x) * two.y, silu(value(i + 2)) * value(i + 3)),
                    epoch);
        } else if (work.output == kGelu) {
            publish(model.hidden_words + row / 2, pack<T>(gelu(two.x), gelu(two.y)), epoch);
        } else if (work.output == kAddToX) {
            two = make_float2(two.x + known.x.x, two.y + known.x.y);
            *reinterpret_cast<float2*>(model.x + row) = two;
            if (work.publishes) publish(model.x_words + row / 2, pack<T>(two.x, two.y), epoch);
        } else {
            give_query_key_value(model, work, shared.angle, row, two, position, page, epoch);
        }
        i += kWriters * work.row_group;
        if (i < work.rows) known = fetch_known(model, work, i);
    }
}

}  // namespace llmk::persistent
