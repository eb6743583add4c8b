// Linear layer with register tiles: a thread computes 8 x 8 outputs, so each value that it loads from shared memory is
// used eight times.
#include <cuda_runtime.h>

#include <cstdint>

#include "llmk/vector.cuh"

constexpr int kTile = 128;  // a block computes kTile x kTile outputs
constexpr int kDepth = 16;  // columns of x and weight in shared memory at a time
constexpr int kThreads = 256;
constexpr int kRow = kTile + 4;  // floats from one k to the next in shared memory

// A tile in shared memory is k-major, tile[k][i], so that a thread loads four neighboring i with one 16-byte access. In
// every other group of eight k, `i` is swapped with i ^ 8. Otherwise the stores of k and k + 8 would use the same
// banks.
__device__ int place(int k, int i) { return k * kRow + (i ^ (k & 8)); }

// Return four neighboring values of a row; zeros where the row or the column does not exist.
__device__ float4 load_four(const float* matrix, long long row, int rows, int col, int cols, bool vectors) {
    float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (row >= rows) return v;
    const float* p = matrix + row * cols + col;
    if (vectors && col < cols) return *reinterpret_cast<const float4*>(p);
    if (col < cols) v.x = p[0];
    if (col + 1 < cols) v.y = p[1];
    if (col + 2 < cols) v.z = p[2];
    if (col + 3 < cols) v.w = p[3];
    return v;
}

__device__ void store_four(float* tile, int k, int i, float4 v) {
    tile[place(k, i)] = v.x;
    tile[place(k + 1, i)] = v.y;
    tile[place(k + 2, i)] = v.z;
    tile[place(k + 3, i)] = v.w;
}

__device__ void fetch_eight(float* to, const float* tile, int k, int i) {
    *reinterpret_cast<float4*>(to) = *reinterpret_cast<const float4*>(tile + place(k, i));
    *reinterpret_cast<float4*>(to + 4) = *reinterpret_cast<const float4*>(tile + place(k, i + kTile / 2));
}

// x: [rows, in_features]   weight: [out_features, in_features]   bias: [out_features]   out: [rows, out_features]
// vectors: every row of x and weight starts at a multiple of 16 bytes
__global__ void __launch_bounds__(kThreads)
    linear_kernel(const float* __restrict__ x, const float* __restrict__ weight, const float* __restrict__ bias,
                  float* __restrict__ out, int rows, int in_features, int out_features, bool vectors) {
    __shared__ __align__(16) float x_tile[2][kDepth * kRow];
    __shared__ __align__(16) float w_tile[2][kDepth * kRow];
    const int tiles_across = (out_features + kTile - 1) / kTile;
    const int row0 = static_cast<int>(blockIdx.x / tiles_across) * kTile;
    const int feature0 = static_cast<int>(blockIdx.x % tiles_across) * kTile;

    // Loads: four threads load the 16 columns of a row, so each warp reads whole 64-byte pieces of eight rows.
    const int load_row = threadIdx.x / 4, load_k = threadIdx.x % 4 * 4;
    // Outputs: a warp has 4 x 8 register tiles. A thread computes rows 4 ty ... 4 ty + 3 and the rows 64 further, and
    // columns 4 tx ... 4 tx + 3 and the columns 64 further.
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int ty = warp / 2 * 4 + lane / 8, tx = warp % 2 * 8 + lane % 8;

    float4 x_next[2], w_next[2];
    auto load = [&](int k0) {
        for (int half = 0; half < 2; ++half) {
            const int i = load_row + half * (kTile / 2);
            x_next[half] = load_four(x, row0 + i, rows, k0 + load_k, in_features, vectors);
            w_next[half] = load_four(weight, feature0 + i, out_features, k0 + load_k, in_features, vectors);
        }
    };
    auto store = [&](int buffer) {
        for (int half = 0; half < 2; ++half) {
            const int i = load_row + half * (kTile / 2);
            store_four(x_tile[buffer], load_k, i, x_next[half]);
            store_four(w_tile[buffer], load_k, i, w_next[half]);
        }
    };

    float sum[8][8] = {};
    load(0);
    store(0);
    __syncthreads();
    int buffer = 0;
    for (int k0 = 0; k0 < in_features; k0 += kDepth) {
        const bool more = k0 + kDepth < in_features;
        if (more) load(k0 + kDepth);  // the loads of the next tiles are in flight while these tiles are used
#pragma unroll
        for (int k = 0; k < kDepth; ++k) {
            float a[8], b[8];
            fetch_eight(a, x_tile[buffer], k, ty * 4);
            fetch_eight(b, w_tile[buffer], k, tx * 4);
#pragma unroll
            for (int i = 0; i < 8; ++i) {
#pragma unroll
                for (int j = 0; j < 8; ++j) sum[i][j] += a[i] * b[j];
            }
        }
        if (more) store(buffer ^ 1);  // to the other buffer, which no thread reads in this iteration
        __syncthreads();
        buffer ^= 1;
    }

#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const int row = row0 + i / 4 * (kTile / 2) + ty * 4 + i % 4;
        if (row >= rows) continue;
#pragma unroll
        for (int j = 0; j < 8; j += 4) {
            const int feature = feature0 + j / 4 * (kTile / 2) + tx * 4;
            float* p = out + static_cast<long long>(row) * out_features + feature;
            if (out_features % 4 == 0 && feature < out_features && reinterpret_cast<uintptr_t>(out) % 16 == 0) {
                *reinterpret_cast<float4*>(p) =
                    make_float4(sum[i][j] + bias[feature], sum[i][j + 1] + bias[feature + 1],
                                sum[i][j + 2] + bias[feature + 2], sum[i][j + 3] + bias[feature + 3]);
            } else {
#pragma unroll
                for (int l = 0; l < 4; ++l) {
                    if (feature + l < out_features) p[l] = sum[i][j + l] + bias[feature + l];
                }
            }
        }
    }
}

// x: [rows, in_features]   weight: [out_features, in_features]   bias: [out_features]   out: [rows, out_features]
extern "C" void linear_register_tiled(const float* x, const float* weight, const float* bias, float* out, int rows,
                                      int in_features, int out_features, cudaStream_t stream) {
    if (rows == 0 || out_features == 0) return;
    const long long tiles = (rows + kTile - 1LL) / kTile * ((out_features + kTile - 1LL) / kTile);
    const bool vectors = llmk::rows_are_aligned(in_features, x, weight);
    linear_kernel<<<static_cast<unsigned>(tiles), kThreads, 0, stream>>>(x, weight, bias, out, rows, in_features,
                                                                         out_features, vectors);
}
