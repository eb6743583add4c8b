// GPTQ's 4-bit weights, eight to a 32-bit word, dequantized to f16 in registers: w = (q - zero) * scale. Day 11 derives
// it.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

namespace llmk {

// Four 32-bit words that one 16-byte access moves.
union Four {
    uint4 vector;
    unsigned word[4];
};

// Reinterpret each 16-bit half of `bits` as a __half, and back.
__device__ __forceinline__ __half2 as_half2(unsigned bits) { return *reinterpret_cast<const __half2*>(&bits); }
__device__ __forceinline__ unsigned as_bits(__half2 pair) { return *reinterpret_cast<const unsigned*>(&pair); }

// lop3.b32: return word & mask | bits in one instruction. nvcc would emit two, one per constant. Source: PTX ISA,
// section "Logic and Shift Instructions: lop3".
__device__ __forceinline__ unsigned lop3_and_or(unsigned word, unsigned mask, unsigned bits) {
    unsigned result;
    asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(result) : "r"(word), "r"(mask), "r"(bits));
    return result;
}

// Compute the numbers that unpack subtracts: pairs of 1024 + zero, and of -(64 + zero). zero is at most 16.
__device__ __forceinline__ void constants(unsigned zero, __half2& low, __half2& high) {
    low = as_half2((0x6400u + zero) * 0x00010001u);
    high = as_half2((0xd400u + 16 * zero) * 0x00010001u);
}

// Unpack the eight weights of a word and subtract their zero, exactly, as four pairs: (0, 4), (1, 5), (2, 6), (3, 7).
// 0x6400 is 1024 in f16, where the last bit counts 1, so 0x6400 | q is 1024 + q. The next nibble counts 16 times as
// much: 1024 + 16 q, which is 16 (64 + q).
__device__ __forceinline__ void unpack(unsigned word, __half2 low, __half2 high, __half2 (&pairs)[4]) {
    const __half2 sixteenth = as_half2(0x2c002c00u);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        const __half2 even = as_half2(lop3_and_or(word, 0x000f000fu, 0x64006400u));
        const __half2 odd = as_half2(lop3_and_or(word, 0x00f000f0u, 0x64006400u));
        pairs[2 * i] = __hsub2(even, low);
        pairs[2 * i + 1] = __hfma2(odd, sixteenth, high);
        word >>= 8;
    }
}

// A layer in GPTQ's format. in_features and out_features are multiples of 8.
struct Int4Layer {
    const int* qweight;    // [in_features / 8, out_features]: eight q per word along k
    const int* qzeros;     // [groups, out_features / 8]: eight zeros per word along n, each stored minus 1
    const __half* scales;  // [groups, out_features]
    const int* g_idx;      // [in_features]: the group of each k with act_order; otherwise it is k / group_size
    int in_features, out_features, group_size;
    bool act_order;
};

// Dequantize one word of each of four columns, at the same eight values of k of one group. weight[c]: the pairs of
// column c, rounded once     zeros: its four lowest nibbles are the zeros of the columns     scales: their scales
__device__ __forceinline__ void finish(const Four& words, unsigned zeros, uint2 scales, __half2 (&weight)[4][4]) {
#pragma unroll
    for (int c = 0; c < 4; ++c) {
        const __half2 two = as_half2(c < 2 ? scales.x : scales.y);
        const __half2 scale = c % 2 == 0 ? __low2half2(two) : __high2half2(two);
        __half2 low, high;
        constants((zeros >> 4 * c & 15) + 1, low, high);
        unpack(words.word[c], low, high, weight[c]);
#pragma unroll
        for (int p = 0; p < 4; ++p) weight[c][p] = __hmul2(weight[c][p], scale);
    }
}

// Dequantize values k ... k + 7 of columns column ... column + 3, which may be in any groups.
__device__ inline void finish(const Four& words, const Int4Layer& w, int k, int column, __half2 (&weight)[4][4]) {
    auto zeros_at = [&](size_t at) { return static_cast<unsigned>(w.qzeros[at / 8]) >> (column % 8 * 4); };
    if (!w.act_order && w.group_size % 8 == 0) {  // no word spans two groups
        const size_t at = static_cast<size_t>(k / w.group_size) * w.out_features + column;
        finish(words, zeros_at(at), *reinterpret_cast<const uint2*>(w.scales + at), weight);
        return;
    }
#pragma unroll
    for (int p = 0; p < 4; ++p) {
        __half value[2][4];
#pragma unroll
        for (int side = 0; side < 2; ++side) {
            const int place = p + 4 * side;
            const size_t group = w.act_order ? w.g_idx[k + place] : (k + place) / w.group_size;
            const size_t at = group * w.out_features + column;
            const unsigned zeros = zeros_at(at);
#pragma unroll
            for (int c = 0; c < 4; ++c) {
                const int q = words.word[c] >> 4 * place & 15, zero = (zeros >> 4 * c & 15) + 1;
                value[side][c] = __hmul(__int2half_rn(q - zero), w.scales[at + c]);
            }
        }
#pragma unroll
        for (int c = 0; c < 4; ++c) weight[c][p] = __halves2half2(value[0][c], value[1][c]);
    }
}

}  // namespace llmk
