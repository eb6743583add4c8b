// Four-bit weights, eight in a word, as halves: GPTQ's words unpacked in registers. Day 11 derives it.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

namespace llmk {

// Four words that one access of 16 bytes moves.
union Four {
    uint4 vector;
    unsigned word[4];
};

// The 16 bits of each half of `bits` are a half.
__device__ __forceinline__ __half2 as_half2(unsigned bits) { return *reinterpret_cast<const __half2*>(&bits); }
__device__ __forceinline__ unsigned as_bits(__half2 pair) { return *reinterpret_cast<const unsigned*>(&pair); }

// word & mask | bits, in one instruction. Left to itself nvcc makes two of it, each with one of the constants.
__device__ __forceinline__ unsigned and_or(unsigned word, unsigned mask, unsigned bits) {
    unsigned result;
    asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(result) : "r"(word), "r"(mask), "r"(bits));
    return result;
}

// What unpack subtracts: 1024 + zero and -(64 + zero), twice each. zero is at most 16.
__device__ __forceinline__ void constants(unsigned zero, __half2& low, __half2& high) {
    low = as_half2((0x6400u + zero) * 0x00010001u);
    high = as_half2((0xd400u + 16 * zero) * 0x00010001u);
}

// The eight weights of a word less their zero, exactly, as four pairs: (0, 4), (1, 5), (2, 6), (3, 7).
// 0x6400 is 1024, and the last bit of a half that large counts 1: 0x6400 | q is 1024 + q. In the nibble above, q counts
// 16 times as much: 1024 + 16 q, which is 16 times 64 + q.
__device__ __forceinline__ void unpack(unsigned word, __half2 low, __half2 high, __half2 (&pairs)[4]) {
    const __half2 sixteenth = as_half2(0x2c002c00u);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const __half2 even = as_half2(and_or(word, 0x000f000fu, 0x64006400u));
        const __half2 odd = as_half2(and_or(word, 0x00f000f0u, 0x64006400u));
        pairs[2 * i] = __hsub2(even, low);
        pairs[2 * i + 1] = __hfma2(odd, sixteenth, high);
        word >>= 8;
    }
}

}  // namespace llmk
