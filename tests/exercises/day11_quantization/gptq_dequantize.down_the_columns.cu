// A different design: a thread dequantizes several words of the same four columns, so that it reuses their zero points
// and scales.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

constexpr int kThreads = 64;
constexpr int kWords = 4;

__global__ void dequantize(const int* qweight, const int* qzeros, const __half* scales, const int* g_idx, __half* out,
                           int words, int out_features) {
    const int column = (blockIdx.x * kThreads + threadIdx.x) * 4;
    if (column >= out_features) return;
    int known = -1;
    __half2 zero[2], scale[2];
    for (int i = blockIdx.y * kWords; i < min(words, static_cast<int>(blockIdx.y + 1) * kWords); ++i) {
        const uint4 four = *reinterpret_cast<const uint4*>(qweight + static_cast<size_t>(i) * out_features + column);
        for (int j = 0; j < 8; ++j) {
            const int group = g_idx[8 * i + j];
            if (group != known) {
                known = group;
                const size_t place = static_cast<size_t>(group) * out_features + column;
                const unsigned z = static_cast<unsigned>(qzeros[place / 8]) >> (column % 8 * 4);
                for (int c = 0; c < 2; ++c) {
                    zero[c] = __halves2half2(__int2half_rn((z >> 8 * c & 15) + 1),
                                             __int2half_rn((z >> (8 * c + 4) & 15) + 1));
                    scale[c] = *reinterpret_cast<const __half2*>(scales + place + 2 * c);
                }
            }
            const __half2 low =
                __halves2half2(__int2half_rn(four.x >> 4 * j & 15), __int2half_rn(four.y >> 4 * j & 15));
            const __half2 high =
                __halves2half2(__int2half_rn(four.z >> 4 * j & 15), __int2half_rn(four.w >> 4 * j & 15));
            const __half2 w0 = __hmul2(__hsub2(low, zero[0]), scale[0]), w1 = __hmul2(__hsub2(high, zero[1]), scale[1]);
            *reinterpret_cast<uint2*>(out + static_cast<size_t>(8 * i + j) * out_features + column) =
                make_uint2(*reinterpret_cast<const unsigned*>(&w0), *reinterpret_cast<const unsigned*>(&w1));
        }
    }
}

extern "C" void gptq_dequantize(const int* qweight, const int* qzeros, const __half* scales, const int* g_idx,
                                __half* out, int in_features, int out_features, cudaStream_t stream) {
    if (in_features == 0 || out_features == 0) return;
    const dim3 grid((out_features + 4 * kThreads - 1) / (4 * kThreads), (in_features / 8 + kWords - 1) / kWords);
    dequantize<<<grid, kThreads, 0, stream>>>(qweight, qzeros, scales, g_idx, out, in_features / 8, out_features);
}
