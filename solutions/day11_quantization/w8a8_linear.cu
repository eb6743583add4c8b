// out = x w for many rows of int8 and int8 weights, on tensor cores with int32 sums:
//   out[m, n] = (sum over k of x[m, k] * weight[n, k]) * x_scales[m] * w_scales[n]
//
//   x: [rows, in_features]     x_scales: [rows]     weight: [out_features, in_features]     w_scales: [out_features]
//   out: [rows, out_features]
//
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "llmk/async_copy.cuh"
#include "llmk/mma.cuh"

constexpr int kDown = 128, kAcross = 128;  // outputs of a block
constexpr int kDepth = 128;                // columns of x and weight in a stage
constexpr int kWarpsDown = 2, kWarpsAcross = 4, kThreads = 32 * kWarpsDown * kWarpsAcross;
constexpr int kF = kDown / kWarpsDown / 16, kG = kAcross / kWarpsAcross / 8;  // mma tiles of a warp, down and across

template <int kTileRows>
using Copier = llmk::ColumnCopier<int8_t, kTileRows, kDepth, kThreads>;
constexpr int kPitch = Copier<kDown>::kPitch;  // 144 bytes: eight rows start in different banks
constexpr int kStage = (kDown + kAcross) * kPitch;

// mma.sync.m16n8k32: sums [16, 8] += a [16, 32] b [32, 8] in int8 and int32. With g = lane / 4 and t = lane % 4, a lane
// holds
//   sums     columns 2 t and 2 t + 1 of row g, then of row g + 8
//   a        columns 4 t ... 4 t + 3 of row g, then of row g + 8; then columns 16 + 4 t ... of both
//   b0, b1   rows 4 t ... 4 t + 3 of column g; rows 16 + 4 t ...
__device__ __forceinline__ void mma_m16n8k32_s8(int (&sums)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// kVectors: every row of x and weight starts at a multiple of 16 bytes.
template <bool kVectors>
__global__ void __launch_bounds__(kThreads)
    w8a8_kernel(const int8_t* __restrict__ x, const float* __restrict__ x_scales, const int8_t* __restrict__ weight,
                const float* __restrict__ w_scales, __half* __restrict__ out, int rows, int in_features,
                int out_features) {
    extern __shared__ __align__(16) int8_t stages[];  // [2][kDown + kAcross][kPitch]
    const int row0 = blockIdx.y * kDown, feature0 = blockIdx.x * kAcross;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int warp_row = warp / kWarpsAcross * 16 * kF, warp_feature = warp % kWarpsAcross * 8 * kG;
    const int rounds = (in_features + kDepth - 1) / kDepth;
    Copier<kDown> x_copier(x, row0, rows, in_features);
    Copier<kAcross> w_copier(weight, feature0, out_features, in_features);
    auto copy = [&](int round) {
        if (round >= rounds) return;
        x_copier.template copy<kVectors>(stages + round % 2 * kStage);
        w_copier.template copy<kVectors>(stages + round % 2 * kStage + kDown * kPitch);
        __pipeline_commit();
    };

    int sums[kF][kG][4] = {};
    copy(0);
    for (int round = 0; round < rounds; ++round) {
        llmk::cp_async_wait_all_and_sync();
        copy(round + 1);  // into the other buffer, while this one is used
        const int8_t* x_tile = stages + round % 2 * kStage + warp_row * kPitch;
        const int8_t* w_tile = stages + round % 2 * kStage + (kDown + warp_feature) * kPitch;
#pragma unroll
        for (int k = 0; k < kDepth; k += 32) {
            // ldmatrix moves pairs of bytes, so four of its 8 x 8 matrices are 16 rows of 32 bytes.
            unsigned a[kF][4], b[kG / 2][4];
#pragma unroll
            for (int f = 0; f < kF; ++f) {
                llmk::ldmatrix_x4(a[f], x_tile + (16 * f + lane % 16) * kPitch + k + lane / 16 * 16);
            }
#pragma unroll
            for (int g = 0; g < kG / 2; ++g) {  // matrices: both halves of k for eight features, then for eight more
                llmk::ldmatrix_x4(b[g], w_tile + (16 * g + lane % 8 + lane / 16 * 8) * kPitch + k + lane / 8 % 2 * 16);
            }
#pragma unroll
            for (int f = 0; f < kF; ++f) {
#pragma unroll
                for (int g = 0; g < kG; ++g) {
                    mma_m16n8k32_s8(sums[f][g], a[f], b[g / 2][g % 2 * 2], b[g / 2][g % 2 * 2 + 1]);
                }
            }
        }
    }

    const bool pairs = out_features % 2 == 0 && reinterpret_cast<uintptr_t>(out) % 4 == 0;
#pragma unroll
    for (int f = 0; f < kF; ++f) {
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            const int row = row0 + warp_row + 16 * f + lane / 4 + 8 * h;
            if (row >= rows) continue;
            const float x_scale = x_scales[row];
            __half* to = out + static_cast<long long>(row) * out_features;
#pragma unroll
            for (int g = 0; g < kG; ++g) {
                const int feature = feature0 + warp_feature + 8 * g + lane % 4 * 2;
                if (feature >= out_features) continue;
                const bool second = feature + 1 < out_features;
                const float first_sum = static_cast<float>(sums[f][g][2 * h]) * x_scale * w_scales[feature];
                const float second_sum =
                    static_cast<float>(sums[f][g][2 * h + 1]) * x_scale * (second ? w_scales[feature + 1] : 0.0f);
                if (pairs) {
                    *reinterpret_cast<__half2*>(to + feature) = __floats2half2_rn(first_sum, second_sum);
                } else {
                    to[feature] = __float2half_rn(first_sum);
                    if (second) to[feature + 1] = __float2half_rn(second_sum);
                }
            }
        }
    }
}

extern "C" void w8a8_linear(const int8_t* x, const float* x_scales, const int8_t* weight, const float* w_scales,
                            __half* out, int rows, int in_features, int out_features, cudaStream_t stream) {
    if (rows == 0 || out_features == 0) return;
    const dim3 grid((out_features + kAcross - 1) / kAcross, (rows + kDown - 1) / kDown);
    const auto starts = reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(weight);
    const bool vectors = in_features % 16 == 0 && starts % 16 == 0;
    const auto kernel = vectors ? w8a8_kernel<true> : w8a8_kernel<false>;
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 2 * kStage);
    kernel<<<grid, kThreads, 2 * kStage, stream>>>(x, x_scales, weight, w_scales, out, rows, in_features, out_features);
}
