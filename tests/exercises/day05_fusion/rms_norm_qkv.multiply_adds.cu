// Correct alternative: no tensor cores. A block computes eight features, its eight warps share in_features; each lane
// holds eight columns of eight weight rows, times norm_weight, while it loops over the rows of x and sums their squares
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

template <typename T>
__device__ void load(const T* row, bool exists, int k, int columns, bool wide, float* values) {
    if (wide && exists && k < columns) {
        const uint4 bits = *reinterpret_cast<const uint4*>(row + k);
        for (int j = 0; j < 8; ++j) values[j] = (float)reinterpret_cast<const T*>(&bits)[j];
    } else {
        for (int j = 0; j < 8; ++j) values[j] = exists && k + j < columns ? (float)row[k + j] : 0.0f;
    }
}

template <typename T>
struct Projection {
    const T* weight;
    const T* bias;
    T* out;
    int features;
};

template <typename T>
__global__ void few_rows(const T* x, const T* norm_weight, Projection<T> q, Projection<T> k, Projection<T> v, int rows,
                         int inner, float eps, bool wide) {
    __shared__ float parts[8][8][16], squares[8][16];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, row0 = blockIdx.y * 16;
    int tile = blockIdx.x;
    const int q_tiles = (q.features + 7) / 8, kv_tiles = (k.features + 7) / 8;
    const Projection<T> own = tile < q_tiles ? q : tile < q_tiles + kv_tiles ? k : v;
    if (tile >= q_tiles) tile = (tile - q_tiles) % kv_tiles;
    const T* weight = own.weight;
    const int features = own.features, feature0 = tile * 8;
    const int here = min(16, rows - row0);
    float sum[8][16] = {}, square[16] = {};
    for (int k = threadIdx.x * 8; k < inner; k += 256 * 8) {
        float w[8][8], a[8], norm[8];
        load(norm_weight, true, k, inner, wide, norm);
        for (int f = 0; f < 8; ++f)
            load(weight + (size_t)(feature0 + f) * inner, feature0 + f < features, k, inner, wide, w[f]);
        for (int row = 0; row < here; ++row) {
            load(x + (size_t)(row0 + row) * inner, true, k, inner, wide, a);
            for (int j = 0; j < 8; ++j) {
                square[row] += a[j] * a[j];
                for (int f = 0; f < 8; ++f) sum[f][row] += w[f][j] * norm[j] * a[j];
            }
        }
    }
    for (int f = 0; f < 8; ++f) {
        for (int row = 0; row < here; ++row) {
            for (int d = 16; d > 0; d /= 2) sum[f][row] += __shfl_xor_sync(0xffffffffu, sum[f][row], d);
            if (lane == 0) parts[warp][f][row] = sum[f][row];
        }
    }
    for (int row = 0; row < here; ++row) {
        for (int d = 16; d > 0; d /= 2) square[row] += __shfl_xor_sync(0xffffffffu, square[row], d);
        if (lane == 0) squares[warp][row] = square[row];
    }
    __syncthreads();
    const int f = threadIdx.x % 8, row = threadIdx.x / 8;
    if (row < here && feature0 + f < features) {
        float total = 0, of_row = 0;
        for (int p = 0; p < 8; ++p) {
            total += parts[p][f][row];
            of_row += squares[p][row];
        }
        const float factor = rsqrtf(of_row / max(inner, 1) + eps);
        own.out[(size_t)(row0 + row) * features + feature0 + f] = T(total * factor + (float)own.bias[feature0 + f]);
    }
}

template <typename T>
void rms_norm_qkv(const T* x, const T* norm_weight, Projection<T> q, Projection<T> k, Projection<T> v, int rows,
                  int inner, float eps, cudaStream_t stream) {
    const int blocks = (q.features + 7) / 8 + 2 * ((k.features + 7) / 8);
    if (rows == 0 || blocks == 0) return;
    const auto all = reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(norm_weight) |
                     reinterpret_cast<uintptr_t>(q.weight) | reinterpret_cast<uintptr_t>(k.weight) |
                     reinterpret_cast<uintptr_t>(v.weight);
    const bool wide = inner % 8 == 0 && all % 16 == 0;
    few_rows<<<dim3(blocks, (rows + 16 - 1) / 16), 256, 0, stream>>>(x, norm_weight, q, k, v, rows, inner, eps, wide);
}

// x: [rows, in_features]   norm_weight: [in_features]   q_weight: [q_features, in_features]   q_bias: [q_features]
// q: [rows, q_features]   k_weight, v_weight: [kv_features, in_features]   k_bias, v_bias: [kv_features]
// k, v: [rows, kv_features]
