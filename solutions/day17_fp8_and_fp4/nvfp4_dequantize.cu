// From NVFP4 to bf16: x = (e2m1 * scale) * (amax / 2688).
//
//   q: [rows, columns / 2], two patterns per byte     scales: [rows, columns / 16], e4m3     amax: [1]
//   x: [rows, columns]
//
// A lane converts eight numbers: four bytes become 16. It has kPieces such pieces in flight.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

constexpr int kThreads = 256;
constexpr int kPieces = 4;  // pieces of eight numbers per thread

union Eight {
    uint4 vector;
    __nv_bfloat162 pair[4];
};

// Convert patterns 0 and 4 of a word to floats. Shifted to the top of an f16, exponent and mantissa of e2m1 are those
// of an f16 that is 2^14 times too small, also for subnormals, so a multiplication corrects them exactly.
__device__ __forceinline__ float2 numbers_of(unsigned patterns) {
    const unsigned bits = (patterns & 0x00070007) << 9 | (patterns & 0x00080008) << 12;
    const __half2 scaled = *reinterpret_cast<const __half2*>(&bits);
    return __half22float2(__hmul2(scaled, __float2half2_rn(16384.0f)));
}

__global__ void __launch_bounds__(kThreads)
    dequantize(const unsigned* __restrict__ q, const unsigned char* __restrict__ scales, const float* __restrict__ amax,
               uint4* __restrict__ x, long long eights) {
    const long long first = static_cast<long long>(blockIdx.x) * (kThreads * kPieces) + threadIdx.x;
    unsigned word[kPieces];
    __nv_fp8_e4m3 scale[kPieces];
#pragma unroll
    for (int p = 0; p < kPieces; ++p) {
        const long long eight = first + p * kThreads;
        word[p] = eight < eights ? q[eight] : 0;
        scale[p].__x = eight < eights ? scales[eight / 2] : 0;
    }
    const float whole = *amax / (448.0f * 6.0f);
#pragma unroll
    for (int p = 0; p < kPieces; ++p) {
        const long long eight = first + p * kThreads;
        if (eight >= eights) return;
        const float own_scale = static_cast<float>(scale[p]);
        float value[8];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const float2 pair = numbers_of(word[p] >> (4 * i));
            value[i] = pair.x * own_scale * whole;
            value[i + 4] = pair.y * own_scale * whole;
        }
        Eight out;
#pragma unroll
        for (int i = 0; i < 4; ++i) out.pair[i] = __floats2bfloat162_rn(value[2 * i], value[2 * i + 1]);
        x[eight] = out.vector;
    }
}

extern "C" void nvfp4_dequantize(const unsigned char* q, const unsigned char* scales, const float* amax,
                                 __nv_bfloat16* x, int rows, int columns, cudaStream_t stream) {
    if (rows == 0 || columns == 0) return;
    const long long eights = static_cast<long long>(rows) * (columns / 8);
    const long long blocks = (eights + kThreads * kPieces - 1) / (kThreads * kPieces);
    dequantize<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(reinterpret_cast<const unsigned*>(q), scales,
                                                                       amax, reinterpret_cast<uint4*>(x), eights);
}
