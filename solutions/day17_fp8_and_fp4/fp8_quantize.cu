// Quantize to e4m3 in groups of 128, with one scale for each group.
//
//   x: [rows, columns]     q: [rows, columns], patterns of e4m3     scales: [rows, ceil(columns / 128)]
//
// 16 lanes share a group, and each holds eight numbers of it in registers: x is read once. A lane has kPieces groups in
// flight, so that enough bytes are on their way.
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

constexpr int kThreads = 128;
constexpr int kPieces = 4;  // pieces of eight numbers per thread
constexpr int kLanes = 16;  // lanes that share a group
constexpr int kBlockColumns = 8 * kThreads * kPieces;
constexpr float kLargest = 448.0f;
constexpr float kSmallestAmax = 1e-10f;

// Return the larger magnitude of two bf16 in a word, as bits. Magnitudes are ordered like their bits. NaN and infinity
// count as 0.
__device__ __forceinline__ unsigned largest_of(unsigned pair) {
    const unsigned low = pair & 0x7fff, high = pair >> 16 & 0x7fff;
    return max(low < 0x7f80 ? low : 0, high < 0x7f80 ? high : 0);
}

// Convert the bits of a bf16 to float: a bf16 is the upper half of a float.
__device__ __forceinline__ float as_float(unsigned bits) { return __uint_as_float(bits << 16); }

__global__ void __launch_bounds__(kThreads) quantize(const __nv_bfloat16* __restrict__ x, unsigned char* __restrict__ q,
                                                     float* __restrict__ scales, int columns, int groups) {
    const size_t row = blockIdx.x;
    const int first = blockIdx.y * kBlockColumns + 8 * threadIdx.x;
    const __nv_bfloat16* own_x = x + row * columns;

    uint4 piece[kPieces];
#pragma unroll
    for (int p = 0; p < kPieces; ++p) {
        const int column = first + p * 8 * kThreads;
        piece[p] = make_uint4(0, 0, 0, 0);
        if (column < columns) piece[p] = *reinterpret_cast<const uint4*>(own_x + column);
    }
#pragma unroll
    for (int p = 0; p < kPieces; ++p) {
        const int column = first + p * 8 * kThreads;
        const unsigned word[4] = {piece[p].x, piece[p].y, piece[p].z, piece[p].w};
        unsigned bits =
            max(max(largest_of(word[0]), largest_of(word[1])), max(largest_of(word[2]), largest_of(word[3])));
#pragma unroll
        for (int offset = kLanes / 2; offset > 0; offset /= 2) {
            bits = max(bits, __shfl_xor_sync(0xffffffff, bits, offset));
        }
        const float amax = fmaxf(as_float(bits), kSmallestAmax);
        const float factor = kLargest / amax;
        if (column >= columns) continue;

        __nv_fp8x4_e4m3 out[2];
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const unsigned low = word[2 * h], high = word[2 * h + 1];
            out[h] = __nv_fp8x4_e4m3(make_float4(as_float(low) * factor, as_float(low >> 16) * factor,
                                                 as_float(high) * factor, as_float(high >> 16) * factor));
        }
        *reinterpret_cast<uint2*>(q + row * columns + column) = make_uint2(out[0].__x, out[1].__x);
        if (threadIdx.x % kLanes == 0) scales[row * groups + column / 128] = amax / kLargest;
    }
}

extern "C" void fp8_quantize(const __nv_bfloat16* x, unsigned char* q, float* scales, int rows, int columns,
                             cudaStream_t stream) {
    if (rows == 0 || columns == 0) return;
    const dim3 grid(rows, (columns + kBlockColumns - 1) / kBlockColumns);
    quantize<<<grid, kThreads, 0, stream>>>(x, q, scales, columns, (columns + 127) / 128);
}
