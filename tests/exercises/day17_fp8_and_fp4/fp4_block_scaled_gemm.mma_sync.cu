// Converts both operands to f16, which is exact, and multiplies with mma.sync m16n8k16, as older GPUs can. A block of
// eight warps computes a 128 x 128 tile of y, with 128 columns of k at a time in shared memory.
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include "llmk/mma.cuh"

constexpr int kRows = 128, kColumns = 128, kDepth = 128, kPitch = kDepth + 8, kWarps = 8;
constexpr int kWarpRows = kRows / 4, kWarpColumns = kColumns / 2;  // 4 x 2 warps per tile
constexpr int kSharedBytes = (kRows + kColumns) * kPitch * 2;

// Convert a tile [128, kDepth] to f16 in shared memory, with zeros outside the matrix. A thread converts 16 elements, which
// have one scale, at a time.
__device__ __forceinline__ void load(__half* tile, const unsigned char* q, const unsigned char* scales, int first,
                                     int rows, int k, int in) {
    constexpr int kGroups = kDepth / 16;
    for (int i = threadIdx.x; i < 128 * kGroups; i += kWarps * 32) {
        const int row = i / kGroups, from = k + i % kGroups * 16;
        __half* to = tile + row * kPitch + i % kGroups * 16;
        uint2 words = make_uint2(0, 0);
        float factor = 0.0f;
        if (first + row < rows && from < in) {
            const size_t element = static_cast<size_t>(first + row) * in + from;
            words = *reinterpret_cast<const uint2*>(q + element / 2);
            __nv_fp8_e4m3 scale;
            scale.__x = scales[element / 16];
            factor = static_cast<float>(scale) * 16384.0f;  // 2^14: the half `tiny` below is 2^14 times too small
        }
        for (int e = 0; e < 16; ++e) {
            const unsigned pattern = (e < 8 ? words.x : words.y) >> (4 * (e % 8));
            const __half tiny = __ushort_as_half(static_cast<unsigned short>((pattern & 7) << 9 | (pattern & 8) << 12));
            to[e] = __float2half(__half2float(tiny) * factor);
        }
    }
}

__global__ void __launch_bounds__(kWarps * 32)
    gemm(const unsigned char* x, const unsigned char* w, const unsigned char* x_scales, const unsigned char* w_scales,
         const float* alpha, float* y, int rows, int in, int out) {
    extern __shared__ __align__(16) __half tiles[];
    __half *x_tile = tiles, *w_tile = tiles + kRows * kPitch;
    const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
    const int row0 = blockIdx.y * kRows, column0 = blockIdx.x * kColumns;
    const int own_row = warp / 2 * kWarpRows, own_column = warp % 2 * kWarpColumns;
    float sums[kWarpRows / 16][kWarpColumns / 8][4] = {};
    for (int k = 0; k < in; k += kDepth) {
        load(x_tile, x, x_scales, row0, rows, k, in);
        load(w_tile, w, w_scales, column0, out, k, in);
        __syncthreads();
        for (int part = 0; part < kDepth; part += 16) {
            unsigned a[kWarpRows / 16][4];
            for (int i = 0; i < kWarpRows / 16; ++i) {
                for (int r = 0; r < 4; ++r) {
                    const int row = own_row + 16 * i + g + r % 2 * 8;
                    a[i][r] = *reinterpret_cast<unsigned*>(x_tile + row * kPitch + part + r / 2 * 8 + 2 * t);
                }
            }
            for (int j = 0; j < kWarpColumns / 8; ++j) {
                const __half* column = w_tile + (own_column + 8 * j + g) * kPitch + part + 2 * t;
                const unsigned b0 = *reinterpret_cast<const unsigned*>(column);
                const unsigned b1 = *reinterpret_cast<const unsigned*>(column + 8);
                for (int i = 0; i < kWarpRows / 16; ++i) llmk::mma_m16n8k16<__half>(sums[i][j], a[i], b0, b1);
            }
        }
        __syncthreads();
    }
    const float factor = *alpha;
    for (int i = 0; i < kWarpRows / 16; ++i) {
        for (int j = 0; j < kWarpColumns / 8; ++j) {
            const int column = column0 + own_column + 8 * j + 2 * t;
            for (int h = 0; h < 2; ++h) {
                const int row = row0 + own_row + 16 * i + g + 8 * h;
                if (row >= rows || column >= out) continue;
                const float2 two = make_float2(factor * sums[i][j][2 * h], factor * sums[i][j][2 * h + 1]);
                float* to = y + static_cast<size_t>(row) * out + column;
                if (out % 2 == 0) {
                    *reinterpret_cast<float2*>(to) = two;
                } else {
                    to[0] = two.x;
                    if (column + 1 < out) to[1] = two.y;
                }
            }
        }
    }
}

extern "C" void fp4_block_scaled_gemm(const unsigned char* x, const unsigned char* w, const unsigned char* x_scales,
                                      const unsigned char* w_scales, const float* alpha, float* y, int rows,
                                      int in_features, int out_features, cudaStream_t stream) {
    if (rows == 0 || out_features == 0) return;
    const dim3 grid((out_features + kColumns - 1) / kColumns, (rows + kRows - 1) / kRows);
    cudaFuncSetAttribute(gemm, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes);
    gemm<<<grid, kWarps * 32, kSharedBytes, stream>>>(x, w, x_scales, w_scales, alpha, y, rows, in_features,
                                                      out_features);
}
