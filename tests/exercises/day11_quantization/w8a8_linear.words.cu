// A different design: lanes read the words of their fragments from shared memory without ldmatrix. Tiles of 64 x 128
// outputs, one buffer, and mma.sync.m16n8k16.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

constexpr int kDown = 64, kAcross = 128, kDepth = 64, kPitch = kDepth + 16, kThreads = 256;

// Copy 16 columns of a row to shared memory; columns past `left` become zeros.
__device__ void copy_columns(signed char* to, const signed char* from, int left) {
    if (left >= 16 && reinterpret_cast<unsigned long long>(from) % 16 == 0) {
        *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(from);
    } else {
        for (int c = 0; c < 16; ++c) to[c] = c < left ? from[c] : static_cast<signed char>(0);
    }
}

__device__ __forceinline__ unsigned word(const signed char* tile, int row, int column) {
    return *reinterpret_cast<const unsigned*>(tile + row * kPitch + column);
}

__global__ void __launch_bounds__(kThreads)
    words_of_fragments(const signed char* x, const float* x_scales, const signed char* weight, const float* w_scales,
                       __half* out, int rows, int in_features, int out_features) {
    __shared__ __align__(16) signed char tiles[(kDown + kAcross) * kPitch];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
    const int row0 = blockIdx.y * kDown, feature0 = blockIdx.x * kAcross;
    const int warp_row = warp / 4 * 32, warp_feature = kDown + warp % 4 * 32;  // lines of the tiles
    int sums[2][4][4] = {};
    for (int column0 = 0; column0 < in_features; column0 += kDepth) {
        for (int piece = threadIdx.x; piece < (kDown + kAcross) * (kDepth / 16); piece += kThreads) {
            const int line = piece % (kDown + kAcross), column = column0 + piece / (kDown + kAcross) * 16;
            const bool of_x = line < kDown;
            const int row = of_x ? row0 + line : feature0 + line - kDown;
            const bool there = row < (of_x ? rows : out_features);
            copy_columns(tiles + line * kPitch + column - column0,
                         (of_x ? x : weight) + static_cast<long long>(there ? row : 0) * in_features + column,
                         there ? in_features - column : 0);
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < kDepth; k += 16) {
#pragma unroll
            for (int f = 0; f < 2; ++f) {
                const unsigned a0 = word(tiles, warp_row + 16 * f + g, k + 4 * t);
                const unsigned a1 = word(tiles, warp_row + 16 * f + g + 8, k + 4 * t);
#pragma unroll
                for (int h = 0; h < 4; ++h) {
                    const unsigned b = word(tiles, warp_feature + 8 * h + g, k + 4 * t);
                    int (&sum)[4] = sums[f][h];
                    asm volatile(
                        "mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
                        "{%0, %1, %2, %3};"
                        : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])
                        : "r"(a0), "r"(a1), "r"(b));
                }
            }
        }
        __syncthreads();
    }
    for (int f = 0; f < 2; ++f) {
        for (int h = 0; h < 4; ++h) {
            for (int e = 0; e < 4; ++e) {
                const int row = row0 + warp_row + 16 * f + g + e / 2 * 8;
                const int feature = feature0 + warp_feature - kDown + 8 * h + 2 * t + e % 2;
                if (row >= rows || feature >= out_features) continue;
                const float scale = x_scales[row] * w_scales[feature];
                out[static_cast<long long>(row) * out_features + feature] =
                    __float2half_rn(static_cast<float>(sums[f][h][e]) * scale);
            }
        }
    }
}

extern "C" void w8a8_linear(const signed char* x, const float* x_scales, const signed char* weight,
                            const float* w_scales, __half* out, int rows, int in_features, int out_features,
                            cudaStream_t stream) {
    if (rows == 0 || out_features == 0) return;
    const dim3 grid((out_features + kAcross - 1) / kAcross, (rows + kDown - 1) / kDown);
    words_of_fragments<<<grid, kThreads, 0, stream>>>(x, x_scales, weight, w_scales, out, rows, in_features,
                                                      out_features);
}
