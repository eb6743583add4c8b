// A naive version: tiles in shared memory, but the sums are computed on CUDA cores.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

constexpr int kTile = 64, kDepth = 64, kPitch = kDepth + 16, kThreads = 256;

// Copy 16 columns of a row to shared memory; columns past `left` become zeros.
__device__ void copy_columns(signed char* to, const signed char* from, int left) {
    if (left >= 16 && reinterpret_cast<unsigned long long>(from) % 16 == 0) {
        *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(from);
    } else {
        for (int c = 0; c < 16; ++c) to[c] = c < left ? from[c] : static_cast<signed char>(0);
    }
}

__global__ void __launch_bounds__(kThreads)
    multiply_adds(const signed char* x, const float* x_scales, const signed char* weight, const float* w_scales,
                  __half* out, int rows, int in_features, int out_features) {
    __shared__ __align__(16) signed char tiles[2 * kTile * kPitch];
    const int row0 = blockIdx.y * kTile, feature0 = blockIdx.x * kTile;
    const int line = threadIdx.x / 16 * 4, across = threadIdx.x % 16;
    int sums[4][4] = {};
    for (int column0 = 0; column0 < in_features; column0 += kDepth) {
        for (int piece = threadIdx.x; piece < 2 * kTile * (kDepth / 16); piece += kThreads) {
            const int at = piece / (kDepth / 16), column = column0 + piece % (kDepth / 16) * 16;
            const bool of_x = at < kTile;
            const int row = of_x ? row0 + at : feature0 + at - kTile;
            const bool there = row < (of_x ? rows : out_features);
            copy_columns(tiles + at * kPitch + column - column0,
                         (of_x ? x : weight) + static_cast<long long>(there ? row : 0) * in_features + column,
                         there ? in_features - column : 0);
        }
        __syncthreads();
        for (int k = 0; k < kDepth; ++k) {
            for (int i = 0; i < 4; ++i) {
                for (int j = 0; j < 4; ++j) {
                    sums[i][j] += tiles[(line + i) * kPitch + k] * tiles[(kTile + across + 16 * j) * kPitch + k];
                }
            }
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; ++i) {
        for (int j = 0; j < 4; ++j) {
            const int row = row0 + line + i, feature = feature0 + across + 16 * j;
            if (row >= rows || feature >= out_features) continue;
            const float scale = x_scales[row] * w_scales[feature];
            out[static_cast<long long>(row) * out_features + feature] =
                __float2half_rn(static_cast<float>(sums[i][j]) * scale);
        }
    }
}

extern "C" void w8a8_linear(const signed char* x, const float* x_scales, const signed char* weight,
                            const float* w_scales, __half* out, int rows, int in_features, int out_features,
                            cudaStream_t stream) {
    if (rows == 0 || out_features == 0) return;
    const dim3 grid((out_features + kTile - 1) / kTile, (rows + kTile - 1) / kTile);
    multiply_adds<<<grid, kThreads, 0, stream>>>(x, x_scales, weight, w_scales, out, rows, in_features, out_features);
}
