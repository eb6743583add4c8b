// Day 16's persistent kernel: data that blocks exchange. A word holds 32 bits of data and the number of the phase that
// wrote them, its *epoch*.
//
// A word is written and read atomically, so a thread that reads the expected epoch has the data too: one trip through
// the L2 cache, where a barrier takes four (fence, count, poll, read). NCCL calls this its LL ("low latency") protocol.
// A writer may overwrite a word after all readers of the old word have read it. The writer knows this because it has
// waited, directly or through other blocks, for words that these readers wrote later. The order of the phases
// ensures it.
#pragma once

#include <cuda_runtime.h>

#include <cstring>

#include "llmk/persistent_model.cuh"

namespace llmk::persistent {

__device__ __forceinline__ void publish(Word* to, unsigned data, unsigned epoch) {
    asm volatile("st.relaxed.gpu.global.b64 [%0], %1;" ::"l"(to), "l"(static_cast<Word>(epoch) << 32 | data)
                 : "memory");
}
__device__ __forceinline__ void publish(Word* to, float value, unsigned epoch) {
    publish(to, __float_as_uint(value), epoch);
}

// Load two neighboring words, each atomically.
__device__ __forceinline__ void look(const Word* at, Word (&words)[2]) {
    asm volatile("ld.relaxed.gpu.global.v2.b64 {%0, %1}, [%2];" : "=l"(words[0]), "=l"(words[1]) : "l"(at) : "memory");
}

// Wait until both words of all `count` pairs (pair i is at `at(i)`, count <= COUNT) have this epoch; return their data.
// All loads are issued before the first is checked, so they take one round trip to the L2 cache instead of COUNT.
template <int COUNT, typename At>
__device__ __forceinline__ void await_pairs(uint2 (&data)[COUNT], At at, int count, unsigned epoch) {
    unsigned missing = (1u << count) - 1;
    while (missing != 0) {
        Word words[COUNT][2];
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            if (missing >> i & 1) look(at(i), words[i]);
        }
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            if (missing >> i & 1 && static_cast<unsigned>(words[i][0] >> 32) == epoch &&
                static_cast<unsigned>(words[i][1] >> 32) == epoch) {
                data[i] = make_uint2(static_cast<unsigned>(words[i][0]), static_cast<unsigned>(words[i][1]));
                missing &= ~(1u << i);
            }
        }
    }
}

// Prefetch a line to the L2 cache.
__device__ __forceinline__ void prefetch(const void* line) {
    asm volatile("prefetch.global.L2 [%0];" ::"l"(line) : "memory");
}

// Pack two numbers of T into 32 bits.
template <typename T>
struct Two {
    T values[2];
};
template <typename T>
__device__ __forceinline__ unsigned pack(float first, float second) {
    const Two<T> two = {{static_cast<T>(first), static_cast<T>(second)}};
    unsigned bits;
    memcpy(&bits, &two, 4);
    return bits;
}
template <typename T>
__device__ __forceinline__ float2 unpack_two(unsigned bits) {
    Two<T> two;
    memcpy(&two, &bits, 4);
    return make_float2(static_cast<float>(two.values[0]), static_cast<float>(two.values[1]));
}

}  // namespace llmk::persistent
