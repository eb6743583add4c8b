// y = x w^T with weights in MXFP4, which become bf16 in registers, right before mma.sync.
//
//   x: [rows, in]     w: [out, in / 2], two patterns of e2m1 per byte     w_scales: [out, in / 32], e8m0     y: [rows, out]
//
// A warp multiplies 16 kHeights rows of w, as operand A, by up to 8 kTiles rows of x, as operand B. With more than eight
// rows of x, loading them from the L2 cache takes most of the time. So each then serves twice as many rows of w.
//
// A lane loads 16 bytes of w, which are the 32 numbers of one scale. The order of k in an mma is free if both operands
// agree. So k 8 i ... 8 i + 7 of a lane are the eight numbers of its word i, in the order 0 4 1 5 2 6 3 7: pairs that one
// shift and mask unpacks. The warps of a block divide k among them, and add their sums in shared memory.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "llmk/mma.cuh"

constexpr int kWarps = 8;
constexpr int kHeight = 16;         // rows of w per mma, which are columns of y
constexpr int kLaneK = 32;          // values of k per lane and step; they have one scale
constexpr int kStepK = 4 * kLaneK;  // values of k per warp and step

// Convert the e2m1 numbers in bits 0 to 3 and 16 to 19 of a word to a pair of bf16 numbers, times 2^-126. The exponent
// of e2m1 becomes the lowest bits of bf16's exponent, its mantissa the highest bit of bf16's mantissa. Subnormal numbers
// of e2m1 are subnormal in bf16.
__device__ __forceinline__ unsigned tiny_pair(unsigned word) {
    return (word << 6 & 0x01c001c0) | (word << 12 & 0x80008000);
}

// Return 2^(pattern - 127) * 2^126 * 2^-64 as a pair of equal bf16 numbers. 2^126 undoes tiny_pair. 2^-64 keeps the
// factor finite; the sums are multiplied by 2^64 at the end.
__device__ __forceinline__ __nv_bfloat162 factor_of(unsigned pattern) {
    const unsigned bits = (pattern + 62) << 7, both = bits | bits << 16;
    return *reinterpret_cast<const __nv_bfloat162*>(&both);
}
constexpr float kUndo = 18446744073709551616.0f;  // 2^64

__device__ __forceinline__ unsigned scaled_pair(unsigned word, __nv_bfloat162 factor) {
    const unsigned tiny = tiny_pair(word);
    const __nv_bfloat162 pair = __hmul2(*reinterpret_cast<const __nv_bfloat162*>(&tiny), factor);
    return *reinterpret_cast<const unsigned*>(&pair);
}

// The words and scales of two rows of w that a lane uses in one step.
struct Weights {
    uint4 upper, lower;
    unsigned upper_scale, lower_scale;
};

__device__ __forceinline__ Weights load(const unsigned char* w, const unsigned char* w_scales, int row, int k, int in,
                                        int out) {
    Weights loaded = {};
    if (k < in && row < out) {
        loaded.upper = __ldcs(reinterpret_cast<const uint4*>(w + (static_cast<size_t>(row) * in + k) / 2));
        loaded.upper_scale = w_scales[(static_cast<size_t>(row) * in + k) / kLaneK];
    }
    if (k < in && row + 8 < out) {
        loaded.lower = __ldcs(reinterpret_cast<const uint4*>(w + (static_cast<size_t>(row + 8) * in + k) / 2));
        loaded.lower_scale = w_scales[(static_cast<size_t>(row + 8) * in + k) / kLaneK];
    }
    return loaded;
}

template <int kTiles, int kHeights>
__global__ void __launch_bounds__(kWarps * 32)
    mxfp4_kernel(const __nv_bfloat16* __restrict__ x, const unsigned char* __restrict__ w,
                 const unsigned char* __restrict__ w_scales, __nv_bfloat16* __restrict__ y, int rows, int in, int out) {
    constexpr int kColumns = kHeights * kHeight, kSums = kHeights * kTiles * 4;  // per block; per lane
    __shared__ float parts[kWarps][kSums][32];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, group = lane / 4, quad = lane % 4;
    const int column = blockIdx.x * kColumns + group;  // this thread loads rows `column`, `column` + 8, ... of w
    const int row0 = blockIdx.y * 8 * kTiles + group;  // this thread loads this row of x and every eighth row after it
    float sums[kHeights][kTiles][4] = {};

    int k = warp * kStepK + quad * kLaneK;
    Weights next[kHeights];
#pragma unroll
    for (int h = 0; h < kHeights; ++h) next[h] = load(w, w_scales, column + h * kHeight, k, in, out);
    for (int first = warp * kStepK; first < in; first += kWarps * kStepK, k += kWarps * kStepK) {
        Weights now[kHeights];
#pragma unroll
        for (int h = 0; h < kHeights; ++h) {
            now[h] = next[h];
            next[h] = load(w, w_scales, column + h * kHeight, k + kWarps * kStepK, in, out);
        }
        uint4 own[kTiles][4];  // 32 columns of a row of x
#pragma unroll
        for (int i = 0; i < kTiles * 4; ++i) {
            own[i / 4][i % 4] = make_uint4(0, 0, 0, 0);
            const int row = row0 + i / 4 * 8;
            if (row < rows && k < in) {
                own[i / 4][i % 4] = *reinterpret_cast<const uint4*>(x + static_cast<size_t>(row) * in + k + i % 4 * 8);
            }
        }
#pragma unroll
        for (int h = 0; h < kHeights; ++h) {
            const unsigned upper_words[4] = {now[h].upper.x, now[h].upper.y, now[h].upper.z, now[h].upper.w};
            const unsigned lower_words[4] = {now[h].lower.x, now[h].lower.y, now[h].lower.z, now[h].lower.w};
            const __nv_bfloat162 upper = factor_of(now[h].upper_scale), lower = factor_of(now[h].lower_scale);
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                unsigned a[2][4];
#pragma unroll
                for (int pair = 0; pair < 4; ++pair) {
                    a[pair / 2][pair % 2 * 2] = scaled_pair(upper_words[i] >> (4 * pair), upper);
                    a[pair / 2][pair % 2 * 2 + 1] = scaled_pair(lower_words[i] >> (4 * pair), lower);
                }
#pragma unroll
                for (int tile = 0; tile < kTiles; ++tile) {
                    const uint4 b = own[tile][i];
                    llmk::mma_m16n8k16<__nv_bfloat16>(sums[h][tile], a[0], __byte_perm(b.x, b.z, 0x5410),
                                                      __byte_perm(b.x, b.z, 0x7632));
                    llmk::mma_m16n8k16<__nv_bfloat16>(sums[h][tile], a[1], __byte_perm(b.y, b.w, 0x5410),
                                                      __byte_perm(b.y, b.w, 0x7632));
                }
            }
        }
    }

#pragma unroll
    for (int i = 0; i < kSums; ++i) parts[warp][i][lane] = sums[i / 4 / kTiles][i / 4 % kTiles][i % 4];
    __syncthreads();
    for (int i = threadIdx.x; i < kSums * 32; i += kWarps * 32) {
        const int of_lane = i % 32, sum = i / 32, height = sum / 4 / kTiles, tile = sum / 4 % kTiles;
        float total = 0.0f;
#pragma unroll
        for (int part = 0; part < kWarps; ++part) total += parts[part][sum][of_lane];
        const int to_column = blockIdx.x * kColumns + height * kHeight + of_lane / 4 + sum % 4 / 2 * 8;
        const int to_row = blockIdx.y * 8 * kTiles + tile * 8 + of_lane % 4 * 2 + sum % 2;
        if (to_row < rows && to_column < out) {
            y[static_cast<size_t>(to_row) * out + to_column] = __float2bfloat16(total * kUndo);
        }
    }
}

template <int kTiles, int kHeights>
static void launch(const __nv_bfloat16* x, const unsigned char* w, const unsigned char* w_scales, __nv_bfloat16* y,
                   int rows, int in, int out, cudaStream_t stream) {
    constexpr int kColumns = kHeights * kHeight;
    const dim3 grid((out + kColumns - 1) / kColumns, (rows + 8 * kTiles - 1) / (8 * kTiles));
    mxfp4_kernel<kTiles, kHeights><<<grid, kWarps * 32, 0, stream>>>(x, w, w_scales, y, rows, in, out);
}

extern "C" void mxfp4_gemm(const __nv_bfloat16* x, const unsigned char* w, const unsigned char* w_scales,
                           __nv_bfloat16* y, int rows, int in_features, int out_features, cudaStream_t stream) {
    if (rows == 0 || out_features == 0) return;
    if (rows <= 8) return launch<1, 1>(x, w, w_scales, y, rows, in_features, out_features, stream);
    if (rows <= 16) return launch<2, 2>(x, w, w_scales, y, rows, in_features, out_features, stream);
    launch<8, 1>(x, w, w_scales, y, rows, in_features, out_features, stream);
}
