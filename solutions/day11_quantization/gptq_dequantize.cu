// The weights of a layer in GPTQ's int4 format, as f16: w = (q - zero) * scale.
//
//   qweight: [in_features / 8, out_features], eight q per word along k     g_idx: [in_features], the group of each k
//   qzeros: [groups, out_features / 8], eight zeros per word along n, each stored minus 1
//   scales: [groups, out_features]     out: [in_features, out_features]
//
// A thread computes eight rows by eight columns: eight whole words of qweight, and for each group one whole word of
// qzeros and eight scales, which stay in registers as long as the group is the same.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

constexpr int kThreads = 128;

// Eight 32-bit numbers, in two 16-byte vectors, and eight 16-bit numbers, in one.
union Words {
    uint4 vectors[2];
    unsigned word[8];
};
union Halves {
    uint4 vector;
    __half2 pair[4];
};

// 0x6400 is 1024 in f16, where the last bit of the mantissa is worth 1. So the bits 0x6400 + n are the number 1024 + n.
constexpr unsigned kTwice1024 = 0x64006400;
__device__ __forceinline__ unsigned two(unsigned low, unsigned high) { return low | high << 16; }
__device__ __forceinline__ __half2 as_half2(unsigned bits) { return *reinterpret_cast<const __half2*>(&bits); }

__global__ void __launch_bounds__(kThreads)
    dequantize(const int* __restrict__ qweight, const int* __restrict__ qzeros, const __half* __restrict__ scales,
               const int* __restrict__ g_idx, __half* __restrict__ out, int out_features) {
    const int eights = out_features / 8;  // groups of eight columns
    const int eight = blockIdx.y * kThreads + threadIdx.x;
    if (eight >= eights) return;
    const size_t word_row = blockIdx.x;

    Words q;
    const uint4* from = reinterpret_cast<const uint4*>(qweight + word_row * out_features) + 2 * eight;
    q.vectors[0] = from[0];
    q.vectors[1] = from[1];
    Words group;  // the groups of the eight rows
    group.vectors[0] = reinterpret_cast<const uint4*>(g_idx)[2 * word_row];
    group.vectors[1] = reinterpret_cast<const uint4*>(g_idx)[2 * word_row + 1];

    Halves scale;
    __half2 zero[4] = {};  // 1024 + the zeros of two columns
#pragma unroll
    for (int j = 0; j < 8; ++j) {
        if (j == 0 || group.word[j] != group.word[j - 1]) {
            const size_t place = static_cast<size_t>(group.word[j]) * eights + eight;
            scale.vector = reinterpret_cast<const uint4*>(scales)[place];
            const unsigned zeros = qzeros[place];
#pragma unroll
            for (int c = 0; c < 4; ++c) {
                zero[c] = as_half2(kTwice1024 + two((zeros >> 8 * c & 15) + 1, (zeros >> (8 * c + 4) & 15) + 1));
            }
        }
        Halves w;
#pragma unroll
        for (int c = 0; c < 4; ++c) {
            const unsigned value = two(q.word[2 * c] >> 4 * j & 15, q.word[2 * c + 1] >> 4 * j & 15);
            // q - zero is exact, because both are integers below 2048. So only the multiplication rounds.
            w.pair[c] = __hmul2(__hsub2(as_half2(kTwice1024 + value), zero[c]), scale.pair[c]);
        }
        reinterpret_cast<uint4*>(out)[(8 * word_row + j) * eights + eight] = w.vector;
    }
}

extern "C" void gptq_dequantize(const int* qweight, const int* qzeros, const __half* scales, const int* g_idx,
                                __half* out, int in_features, int out_features, cudaStream_t stream) {
    if (in_features == 0 || out_features == 0) return;
    const dim3 grid(in_features / 8, (out_features / 8 + kThreads - 1) / kThreads);
    dequantize<<<grid, kThreads, 0, stream>>>(qweight, qzeros, scales, g_idx, out, out_features);
}
