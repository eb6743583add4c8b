// Day 16's persistent kernel: readers compute attention, one query head over one part of the keys per block.
#pragma once

#include <cuda_runtime.h>

#include "llmk/decode.cuh"
#include "llmk/mbarrier.cuh"
#include "llmk/persistent_cache.cuh"
#include "llmk/persistent_words.cuh"
#include "llmk/persistent_work.cuh"
#include "llmk/reduce.cuh"

namespace llmk::persistent {

// Return eight columns of the key or value of this token, which another block may just have computed.
__device__ __forceinline__ void await_row(const Word* now, unsigned epoch, float (&numbers)[8]) {
    uint2 data[4];
    await_pairs(data, [&](int i) { return now + 2 * i; }, 4, epoch);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
        numbers[2 * j] = __uint_as_float(data[j].x);
        numbers[2 * j + 1] = __uint_as_float(data[j].y);
    }
}

// Merge the online softmax (maximum, total, sum) with that of the lane at this distance.
__device__ __forceinline__ void merge_lanes(float& largest, float& total, float (&sum)[8], int distance) {
    const float other = __shfl_xor_sync(llmk::kAllLanes, largest, distance);
    const float now = fmaxf(largest, other);
    const float mine = largest == -INFINITY ? 0.0f : exp2f(largest - now);
    const float theirs = other == -INFINITY ? 0.0f : exp2f(other - now);
    total = total * mine + __shfl_xor_sync(llmk::kAllLanes, total, distance) * theirs;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
        sum[j] = sum[j] * mine + __shfl_xor_sync(llmk::kAllLanes, sum[j], distance) * theirs;
    }
    largest = now;
}

// Attention of one query head over one part of the keys: `lanes` lanes hold a row, 8 columns each. sums: [kReaders /
// 32, head_dim], shared.
template <typename T>
__device__ void attend(const Model<T>& model, const Work& work, int lanes, int head, int part, int keys, int reader,
                       unsigned read, unsigned epoch, float* sums) {
    constexpr int kReadingWarps = kReaders / 32;
    __shared__ float largests[kReadingWarps], totals[kReadingWarps];
    const int lane = reader % 32, warp = reader / 32, rows = 32 / lanes;  // rows: keys that a warp reads at a time
    const int begin = lane % lanes * 8, stride = kReadingWarps * rows;
    const bool used = begin < model.head_dim;
    const int kv_head = head / (model.heads / model.kv_heads);
    const int each = keys_per_part(keys, model.splits);
    const int first = part * each, end = min(first + each, keys);
    const Word* query_now = model.qkv_words + head * model.head_dim + begin;
    const Word* key_now = model.qkv_words + (model.heads + kv_head) * model.head_dim + begin;
    const Word* value_now = key_now + model.kv_heads * model.head_dim;

    // Load the keys and values of earlier tokens before the query is complete.
    uint4 k = make_uint4(0, 0, 0, 0), v = k;
    auto fetch = [&](int key) {
        if (key >= min(end, keys - 1) || !used) return;
        const long long row = cache_row(model, work.layer, page_of(model, key), kv_head, key) + begin;
        k = *reinterpret_cast<const uint4*>(model.keys + row);
        v = *reinterpret_cast<const uint4*>(model.values + row);
    };
    int key = first + warp * rows + lane / lanes;
    fetch(key);

    float query[8] = {}, sum[8] = {}, largest = -INFINITY, total = 0;
    if (used) await_row(query_now, read, query);
#pragma unroll
    for (int j = 0; j < 8; ++j) query[j] *= model.scale * kLog2OfE;
    for (int base = first + warp * rows; base < end; base += stride, key += stride) {
        float numbers[8], values[8], score = 0;
        llmk::unpack<T>(k, numbers);
        llmk::unpack<T>(v, values);
        fetch(key + stride);
        if (key == keys - 1 && used) {
            await_row(key_now, read, numbers);
            await_row(value_now, read, values);
        }
#pragma unroll
        for (int j = 0; j < 8; ++j) score += query[j] * numbers[j];
        for (int distance = lanes / 2; distance > 0; distance /= 2) {
            score += __shfl_xor_sync(llmk::kAllLanes, score, distance);
        }
        if (key < end) {
            const float now = fmaxf(largest, score), old_share = exp2f(largest - now), share = exp2f(score - now);
            total = total * old_share + share;
#pragma unroll
            for (int j = 0; j < 8; ++j) sum[j] = sum[j] * old_share + share * values[j];
            largest = now;
        }
    }
    for (int distance = lanes; distance < 32; distance *= 2) merge_lanes(largest, total, sum, distance);

    if (lane < lanes && used) {
#pragma unroll
        for (int j = 0; j < 8; ++j) sums[warp * model.head_dim + begin + j] = sum[j];
    }
    if (lane == 0) {
        largests[warp] = largest;
        totals[warp] = total;
    }
    llmk::bar_sync(kReadersBarrier, kReaders);
    for (int column = reader; column < model.head_dim; column += kReaders) {
        float m = -INFINITY, l = 0, weighted = 0;
#pragma unroll
        for (int w = 0; w < kReadingWarps; ++w) m = fmaxf(m, largests[w]);
#pragma unroll
        for (int w = 0; w < kReadingWarps; ++w) {
            const float share = exp2f(largests[w] - m);  // 0 for a warp without keys
            l += share * totals[w];
            weighted += share * sums[w * model.head_dim + column];
        }
        Word* to = model.part_words + (head * model.splits + part) * (model.head_dim + 2);
        publish(to + column, weighted / l, epoch);
        if (column < 2) publish(to + model.head_dim + column, m + log2f(l), epoch);  // words are read in pairs
    }
    llmk::bar_sync(kReadersBarrier, kReaders);  // all readers have read the sums, which the next call overwrites
}

template <typename T>
__device__ void attention(const Model<T>& model, const Work& work, int keys, int reader, unsigned read, unsigned epoch,
                          float* sums) {
    const int parts = parts_of(keys, model.splits);
    const int lanes = model.head_dim <= 64 ? 8 : model.head_dim <= 128 ? 16 : 32;
    for (int task = blockIdx.x; task < model.heads * parts; task += gridDim.x) {
        attend(model, work, lanes, task / parts, task % parts, keys, reader, read, epoch, sums);
    }
}

}  // namespace llmk::persistent
