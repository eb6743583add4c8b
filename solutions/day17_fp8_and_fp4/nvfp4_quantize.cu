// Quantize to NVFP4: e2m1, with an e4m3 scale for each 16 neighbors and one f32 scale for the tensor.
//
//   x: [rows, columns]     amax: [1]     q: [rows, columns / 2], two patterns per byte     scales: [rows, columns / 16]
//
// A group never spans two rows, so all tensors are flat here. Two lanes share a group, and each holds eight numbers of
// it, a *piece*. The arithmetic limits this kernel, not the memory, so it saves instructions. Two lanes have pieces of
// two groups: the even lane computes the scale of the first group, the odd lane that of the second, and two shuffles
// exchange what the other lane needs. Before Blackwell a GPU has no instruction that converts to e2m1. Float additions
// round here, and leave the pattern in the low bits of their result.
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

constexpr int kThreads = 256;
constexpr int kPieces = 4;             // pieces per thread: even
constexpr float kMagic = 12582912.0f;  // 1.5 * 2^23: adding it to a small number rounds to an integer, ties to even

// Return the pattern of e2m1 that is nearest to 2 h, ties to even, at most 6, plus the bits of kMagic.
// The patterns 0 to 4 are 0.5 apart, 4 to 6 are 1 apart, and 7 is 2 from 6. So the pattern is a sum of three parts, and
// the saturation to [0, 1] bounds each part. A part begins after the previous ones have reached an even number, so a sum
// that is rounded to even rounds the part to even, too.
__device__ __forceinline__ unsigned e2m1(float h) {
    float sum = fmaf(__saturatef(h), 4.0f, kMagic);
    sum = fmaf(__saturatef(h - 1.0f), 2.0f, sum);
    sum += __saturatef(h - 2.0f);
    return __float_as_uint(sum);
}

__device__ __forceinline__ float low_of(unsigned pair) { return __uint_as_float(pair << 16); }
__device__ __forceinline__ float high_of(unsigned pair) { return __uint_as_float(pair & 0xffff0000); }

// Return the patterns of eight numbers of bf16, multiplied by `inverse` >= 0.
__device__ __forceinline__ unsigned patterns(const uint4& x, float inverse) {
    const unsigned word[4] = {x.x, x.y, x.z, x.w};
    const float half = 0.5f * inverse;
    unsigned sizes = 0;
#pragma unroll
    for (int i = 3; i >= 0; --i) {
        sizes = 16 * sizes + e2m1(fabsf(high_of(word[i])) * half);
        sizes = 16 * sizes + e2m1(fabsf(low_of(word[i])) * half);
    }
    sizes -= 0x4b400000u * 0x11111111u;  // eight times the bits of kMagic, each shifted like its pattern
    // The signs are the highest bits of the odd bytes. Gather the bytes of the low halves and of the high halves.
    const unsigned odd01 = __byte_perm(word[0], word[1], 0x7531), odd23 = __byte_perm(word[2], word[3], 0x7531);
    const unsigned low = __byte_perm(odd01, odd23, 0x6420), high = __byte_perm(odd01, odd23, 0x7531);
    return sizes | (low >> 4 & 0x08080808) | (high & 0x80808080);
}

// Return the largest magnitude of eight numbers.
__device__ __forceinline__ float largest(const uint4& x) {
    const __nv_bfloat162* pair = reinterpret_cast<const __nv_bfloat162*>(&x);
    const __nv_bfloat162 first = __hmax2(__habs2(pair[0]), __habs2(pair[1]));
    const __nv_bfloat162 most = __hmax2(first, __hmax2(__habs2(pair[2]), __habs2(pair[3])));
    return fmaxf(__low2float(most), __high2float(most));
}

// Return m / 6 as an IEEE division does, for 0 <= m <= 4096: round the product with 1 / 6, then correct it by the
// remainder. A division is three times as many instructions.
__device__ __forceinline__ float sixth(float m) {
    const float quotient = m * (1.0f / 6.0f);
    return fmaf(fmaf(-6.0f, quotient, m), 1.0f / 6.0f, quotient);
}

// The pointers are this thread's first piece in each tensor, and its group's scale. left: the number of pieces from
// there to the end. kWhole: true if all of the thread's pieces exist.
template <bool kWhole>
__device__ __forceinline__ void quantize_pieces(const uint4* __restrict__ x, const float* __restrict__ amax,
                                                unsigned* __restrict__ q, unsigned char* __restrict__ scales,
                                                long long left) {
    const auto exists = [&](int p) { return kWhole || p * kThreads < left; };
    uint4 piece[kPieces];
#pragma unroll
    for (int p = 0; p < kPieces; ++p) piece[p] = exists(p) ? __ldcs(x + p * kThreads) : make_uint4(0, 0, 0, 0);
    const float whole = *amax, factor = whole > 0.0f ? 448.0f * 6.0f / whole : 0.0f;
    const bool odd = threadIdx.x % 2;
#pragma unroll
    for (int p = 0; p < kPieces; p += 2) {
        const float first = largest(piece[p]), second = largest(piece[p + 1]);
        const float other = __shfl_xor_sync(0xffffffff, odd ? first : second, 1);
        const float most = fmaxf(odd ? second : first, other);

        // Numbers above 448 * 6 saturate, so the limit changes no scale. It keeps infinity away from the correction.
        const __nv_fp8_e4m3 scale(sixth(fminf(most * factor, 4096.0f)));
        const float decoded = static_cast<float>(scale);
        const float inverse = decoded > 0.0f ? factor / decoded : 0.0f;
        const float other_inverse = __shfl_xor_sync(0xffffffff, inverse, 1);
        if (exists(p + odd)) scales[(p + odd) * (kThreads / 2)] = scale.__x;
        if (exists(p)) q[p * kThreads] = patterns(piece[p], odd ? other_inverse : inverse);
        if (exists(p + 1)) q[(p + 1) * kThreads] = patterns(piece[p + 1], odd ? inverse : other_inverse);
    }
}

// eights: the number of pieces
__global__ void __launch_bounds__(kThreads)
    quantize(const uint4* __restrict__ x, const float* __restrict__ amax, unsigned* __restrict__ q,
             unsigned char* __restrict__ scales, long long eights) {
    const long long block = static_cast<long long>(blockIdx.x) * (kThreads * kPieces), own = block + threadIdx.x;
    if (block + kThreads * kPieces <= eights) {
        quantize_pieces<true>(x + own, amax, q + own, scales + own / 2, eights - own);
    } else {
        quantize_pieces<false>(x + own, amax, q + own, scales + own / 2, eights - own);
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
