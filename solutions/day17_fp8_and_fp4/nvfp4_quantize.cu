// Quantize to NVFP4: e2m1, with an e4m3 scale for each 16 neighbors and one f32 scale for the tensor.
//
//   x: [rows, columns]     amax: [1]     q: [rows, columns / 2], two patterns per byte     scales: [rows, columns / 16]
//
// A group never spans two rows, so all tensors are flat here. Two lanes share a group, and each holds eight numbers of
// it. They shuffle once to find the group's largest. Before Blackwell a GPU has no instruction that converts to e2m1, so
// the rounding is done on bits.
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

constexpr int kThreads = 256;
constexpr int kPieces = 4;  // pieces of eight numbers per thread

// Return the pattern of e2m1 that is nearest to x, ties to even, at most 6.
__device__ __forceinline__ unsigned e2m1(float x) {
    const unsigned bits = __float_as_uint(x), size = bits & 0x7fffffff;
    // For numbers from 1 on, keep one bit of the mantissa: adding slightly less than half of it, plus the bit, rounds
    // to nearest even. The pattern of 1 is 2.
    const unsigned normal = ((size + 0x1fffff + (size >> 22 & 1)) >> 22) - 252;
    // Below 1, the pattern is the number of halves.
    const unsigned small = __float2uint_rn(2.0f * __uint_as_float(size));
    return (size < 0x3f800000 ? small : min(normal, 7u)) | (bits >> 31) << 3;
}

__device__ __forceinline__ float low_of(unsigned pair) { return __uint_as_float(pair << 16); }
__device__ __forceinline__ float high_of(unsigned pair) { return __uint_as_float(pair & 0xffff0000); }

__global__ void __launch_bounds__(kThreads)
    quantize(const uint4* __restrict__ x, const float* __restrict__ amax, unsigned* __restrict__ q,
             unsigned char* __restrict__ scales, long long eights) {
    const long long first = static_cast<long long>(blockIdx.x) * (kThreads * kPieces) + threadIdx.x;
    uint4 piece[kPieces];
#pragma unroll
    for (int p = 0; p < kPieces; ++p) {
        const long long eight = first + p * kThreads;
        piece[p] = eight < eights ? x[eight] : make_uint4(0, 0, 0, 0);
    }
    const float whole = *amax, factor = whole > 0.0f ? 448.0f * 6.0f / whole : 0.0f;
#pragma unroll
    for (int p = 0; p < kPieces; ++p) {
        const long long eight = first + p * kThreads;
        const unsigned word[4] = {piece[p].x, piece[p].y, piece[p].z, piece[p].w};
        float most = 0.0f;
#pragma unroll
        for (int i = 0; i < 4; ++i) most = fmaxf(most, fmaxf(fabsf(low_of(word[i])), fabsf(high_of(word[i]))));
        most = fmaxf(most, __shfl_xor_sync(0xffffffff, most, 1));

        const __nv_fp8_e4m3 scale(most * factor / 6.0f);
        const float decoded = static_cast<float>(scale);
        const float inverse = decoded > 0.0f ? factor / decoded : 0.0f;
        unsigned out = 0;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            out |= (e2m1(low_of(word[i]) * inverse) | e2m1(high_of(word[i]) * inverse) << 4) << (8 * i);
        }
        if (eight >= eights) return;  // then the whole group, and all later pieces, are past the end
        q[eight] = out;
        if (threadIdx.x % 2 == 0) scales[eight / 2] = scale.__x;
    }
}

extern "C" void nvfp4_quantize(const __nv_bfloat16* x, const float* amax, unsigned char* q, unsigned char* scales,
                               int rows, int columns, cudaStream_t stream) {
    if (rows == 0 || columns == 0) return;
    const long long eights = static_cast<long long>(rows) * (columns / 8);
    const long long blocks = (eights + kThreads * kPieces - 1) / (kThreads * kPieces);
    quantize<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(reinterpret_cast<const uint4*>(x), amax,
                                                                     reinterpret_cast<unsigned*>(q), scales, eights);
}
