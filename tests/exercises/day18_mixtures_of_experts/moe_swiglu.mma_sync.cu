// Another design: mma.sync, which all GPUs since Ampere support. A block of four warps computes a 128 x 64 tile of y:
// the block's tile of w has 64 rows of g and then 64 rows of u. A warp issues no mma if its 32 rows do not exist.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "llmk/mma.cuh"

constexpr int kHalf = 64;           // columns of y per block
constexpr int kSize = 128;          // rows of y per block, and rows of w: half of g, half of u
constexpr int kDepth = 64;          // columns of k per step
constexpr int kPitch = kDepth + 8;  // row stride in elements: eight rows start in different banks
constexpr int kThreads = 128;

template <int kTileRows, typename T>
__device__ void load_tile(T* tile, const T* from, int rows, int columns, int stride) {
    for (int i = threadIdx.x; i < kTileRows * kDepth / 8; i += kThreads) {
        const int row = i / (kDepth / 8), column = i % (kDepth / 8) * 8;
        uint4 bits = make_uint4(0, 0, 0, 0);
        if (row < rows && column < columns) {
            bits = *reinterpret_cast<const uint4*>(from + static_cast<long long>(row) * stride + column);
        }
        *reinterpret_cast<uint4*>(tile + row * kPitch + column) = bits;
    }
}

__device__ float swiglu(float gate, float up) { return up * gate / (1.0f + expf(-gate)); }

template <typename T>
__global__ void __launch_bounds__(kThreads)
    mma_kernel(const T* x, const T* w, const int* offsets, T* y, int experts, int in, int out) {
    __shared__ __align__(16) T x_tile[kSize * kPitch], w_tile[kSize * kPitch];
    int expert = 0, row_of_tiles = blockIdx.y;
    for (; expert < experts; ++expert) {
        const int of_expert = (offsets[expert + 1] - offsets[expert] + kSize - 1) / kSize;
        if (row_of_tiles < of_expert) break;
        row_of_tiles -= of_expert;
    }
    if (expert == experts) return;
    const int row0 = offsets[expert] + row_of_tiles * kSize, end = offsets[expert + 1];
    const int column0 = blockIdx.x * kHalf;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const T* gate = w + (2LL * expert * out + column0) * in;
    const T* up = gate + static_cast<long long>(out) * in;
    const bool busy = row0 + warp * 32 < end;

    float sums[2][kSize / 8][4] = {};  // 32 rows, 128 columns
    for (int k = 0; k < in; k += kDepth) {
        load_tile<kSize>(x_tile, x + static_cast<long long>(row0) * in + k, end - row0, in - k, in);
        load_tile<kHalf>(w_tile, gate + k, out - column0, in - k, in);
        load_tile<kHalf>(w_tile + kHalf * kPitch, up + k, out - column0, in - k, in);
        __syncthreads();
        for (int c = 0; busy && c < kDepth; c += 16) {
            unsigned a[2][4];
            for (int i = 0; i < 2; ++i) {
                llmk::ldmatrix_x4(a[i], x_tile + (warp * 32 + i * 16 + lane % 16) * kPitch + c + lane / 16 * 8);
            }
#pragma unroll
            for (int j = 0; j < kSize / 16; ++j) {
                unsigned b[4];
                llmk::ldmatrix_x4(b, w_tile + (j * 16 + lane % 8 + lane / 16 * 8) * kPitch + c + lane / 8 % 2 * 8);
                for (int i = 0; i < 2; ++i) {
                    llmk::mma_m16n8k16<T>(sums[i][2 * j], a[i], b[0], b[1]);
                    llmk::mma_m16n8k16<T>(sums[i][2 * j + 1], a[i], b[2], b[3]);
                }
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int j = 0; j < kHalf / 8; ++j) {
            for (int h = 0; h < 2; ++h) {
                const int row = row0 + warp * 32 + i * 16 + h * 8 + lane / 4, column = column0 + j * 8 + lane % 4 * 2;
                if (row < end && column < out) {
                    *reinterpret_cast<unsigned*>(y + static_cast<long long>(row) * out + column) =
                        llmk::pack_pair<T>(swiglu(sums[i][j][2 * h], sums[i][j + kHalf / 8][2 * h]),
                                           swiglu(sums[i][j][2 * h + 1], sums[i][j + kHalf / 8][2 * h + 1]));
                }
            }
        }
    }
}

template <typename T>
static void moe_swiglu(const T* x, const T* w, const int* offsets, T* y, int rows, int experts, int in, int out,
                       cudaStream_t stream) {
    if (rows == 0 || out == 0) return;
    const dim3 grid((out + kHalf - 1) / kHalf, rows / kSize + min(experts, rows));
    mma_kernel<<<grid, kThreads, 0, stream>>>(x, w, offsets, y, experts, in, out);
}
