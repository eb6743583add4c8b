// Correct alternative: no tensor cores. A block computes eight features. Its eight warps divide in_features among them.
// Each lane holds eight columns of eight weight rows while it loops over the rows of x.
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
__global__ void few_rows(const T* x, const T* weight, const T* bias, T* out, int rows, int inner, int features,
                         bool has_bias, bool wide) {
    __shared__ float parts[8][8][16];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, feature0 = blockIdx.x * 8, row0 = blockIdx.y * 16;
    const int here = min(16, rows - row0);
    float sum[8][16] = {};
    for (int k = threadIdx.x * 8; k < inner; k += 256 * 8) {
        float w[8][8], a[8];
        for (int f = 0; f < 8; ++f)
            load(weight + (size_t)(feature0 + f) * inner, feature0 + f < features, k, inner, wide, w[f]);
        for (int row = 0; row < here; ++row) {
            load(x + (size_t)(row0 + row) * inner, true, k, inner, wide, a);
            for (int f = 0; f < 8; ++f) {
                for (int j = 0; j < 8; ++j) sum[f][row] += w[f][j] * a[j];
            }
        }
    }
    for (int f = 0; f < 8; ++f) {
        for (int row = 0; row < here; ++row) {
            for (int d = 16; d > 0; d /= 2) sum[f][row] += __shfl_xor_sync(0xffffffffu, sum[f][row], d);
            if (lane == 0) parts[warp][f][row] = sum[f][row];
        }
    }
    __syncthreads();
    const int f = threadIdx.x % 8, row = threadIdx.x / 8;
    if (row < here && feature0 + f < features) {
        float total = has_bias ? (float)bias[feature0 + f] : 0.0f;
        for (int p = 0; p < 8; ++p) total += parts[p][f][row];
        out[(size_t)(row0 + row) * features + feature0 + f] = T(total);
    }
}

template <typename T>
void linear_decode(const T* x, const T* weight, const T* bias, T* out, int rows, int inner, int features, bool has_bias,
                   cudaStream_t stream) {
    if (rows == 0 || features == 0) return;
    const bool wide =
        inner % 8 == 0 && (reinterpret_cast<uintptr_t>(x) | reinterpret_cast<uintptr_t>(weight)) % 16 == 0;
    few_rows<<<dim3((features + 7) / 8, (rows + 15) / 16), 256, 0, stream>>>(x, weight, bias, out, rows, inner,
                                                                             features, has_bias, wide);
}
