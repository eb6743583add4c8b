// RMSNorm, then a linear layer, fused step by step. f32 and plain tiles, so that only the fusion is new.
#include <cuda_runtime.h>

constexpr int kTile = 32;  // a block computes kTile x kTile outputs, one per thread

__device__ float warp_sum(float mine) {
    for (int distance = 16; distance > 0; distance /= 2) mine += __shfl_xor_sync(0xffffffffu, mine, distance);
    return mine;
}

__device__ float at(const float* matrix, int row, int col, int rows, int cols) {
    return row < rows && col < cols ? matrix[static_cast<long long>(row) * cols + col] : 0.0f;
}

// Version 1, first half: one warp per row.
__global__ void norm_kernel(const float* x, const float* norm_weight, float* normed, int rows, int inner, float eps) {
    const int row = blockIdx.x * blockDim.y + threadIdx.y;
    if (row >= rows) return;
    float squares = 0.0f;
    for (int k = threadIdx.x; k < inner; k += 32) {
        const float value = at(x, row, k, rows, inner);
        squares += value * value;
    }
    const float factor = rsqrtf(warp_sum(squares) / inner + eps);
    for (int k = threadIdx.x; k < inner; k += 32) {
        normed[static_cast<long long>(row) * inner + k] = at(x, row, k, rows, inner) * factor * norm_weight[k];
    }
}

// Version 1, second half: day 4's tiles.
__global__ void linear_kernel(const float* x, const float* weight, float* out, int rows, int inner, int features) {
    __shared__ float x_tile[kTile][kTile + 1], w_tile[kTile][kTile + 1];
    const int row0 = blockIdx.y * kTile, feature0 = blockIdx.x * kTile;
    float sum = 0.0f;
    for (int k0 = 0; k0 < inner; k0 += kTile) {
        const int k = k0 + threadIdx.x;
        x_tile[threadIdx.y][threadIdx.x] = at(x, row0 + threadIdx.y, k, rows, inner);
        w_tile[threadIdx.y][threadIdx.x] = at(weight, feature0 + threadIdx.y, k, features, inner);
        __syncthreads();
        for (int i = 0; i < kTile; ++i) sum += x_tile[threadIdx.y][i] * w_tile[threadIdx.x][i];
        __syncthreads();
    }
    const int row = row0 + threadIdx.y, feature = feature0 + threadIdx.x;
    if (row < rows && feature < features) out[static_cast<long long>(row) * features + feature] = sum;
}

// Version 2: one kernel, which computes each row's factor before the matmul. A warp holds one row of the tile.
__global__ void factor_first_kernel(const float* x, const float* norm_weight, const float* weight, float* out, int rows,
                                    int inner, int features, float eps) {
    __shared__ float x_tile[kTile][kTile + 1], w_tile[kTile][kTile + 1];
    const int row0 = blockIdx.y * kTile, feature0 = blockIdx.x * kTile;
    float squares = 0.0f;
    for (int k = threadIdx.x; k < inner; k += kTile) {
        const float value = at(x, row0 + threadIdx.y, k, rows, inner);
        squares += value * value;
    }
    const float factor = rsqrtf(warp_sum(squares) / inner + eps);
    float sum = 0.0f;
    for (int k0 = 0; k0 < inner; k0 += kTile) {
        const int k = k0 + threadIdx.x;
        const float column_factor = k < inner ? norm_weight[k] : 0.0f;
        x_tile[threadIdx.y][threadIdx.x] = at(x, row0 + threadIdx.y, k, rows, inner) * factor * column_factor;
        w_tile[threadIdx.y][threadIdx.x] = at(weight, feature0 + threadIdx.y, k, features, inner);
        __syncthreads();
        for (int i = 0; i < kTile; ++i) sum += x_tile[threadIdx.y][i] * w_tile[threadIdx.x][i];
        __syncthreads();
    }
    const int row = row0 + threadIdx.y, feature = feature0 + threadIdx.x;
    if (row < rows && feature < features) out[static_cast<long long>(row) * features + feature] = sum;
}

// Version 3: the factor is applied to the finished sum, so one walk over the row is enough; it also sums the squares.
__global__ void factor_last_kernel(const float* x, const float* norm_weight, const float* weight, float* out, int rows,
                                   int inner, int features, float eps) {
    __shared__ float x_tile[kTile][kTile + 1], w_tile[kTile][kTile + 1];
    const int row0 = blockIdx.y * kTile, feature0 = blockIdx.x * kTile;
    float squares = 0.0f, sum = 0.0f;
    for (int k0 = 0; k0 < inner; k0 += kTile) {
        const int k = k0 + threadIdx.x;
        const float value = at(x, row0 + threadIdx.y, k, rows, inner);
        const float column_factor = k < inner ? norm_weight[k] : 0.0f;
        squares += value * value;
        x_tile[threadIdx.y][threadIdx.x] = value;
        w_tile[threadIdx.y][threadIdx.x] = at(weight, feature0 + threadIdx.y, k, features, inner) * column_factor;
        __syncthreads();
        for (int i = 0; i < kTile; ++i) sum += x_tile[threadIdx.y][i] * w_tile[threadIdx.x][i];
        __syncthreads();
    }
    const float factor = rsqrtf(warp_sum(squares) / inner + eps);
    const int row = row0 + threadIdx.y, feature = feature0 + threadIdx.x;
    if (row < rows && feature < features) out[static_cast<long long>(row) * features + feature] = sum * factor;
}

dim3 tiles_of(int rows, int features) { return dim3((features + kTile - 1) / kTile, (rows + kTile - 1) / kTile); }

// x: [rows, inner]   norm_weight: [inner]   weight: [features, inner]   out: [rows, features]   normed: [rows, inner]
extern "C" void norm_linear_1(const float* x, const float* norm_weight, const float* weight, float* normed, float* out,
                              int rows, int inner, int features, float eps, cudaStream_t stream) {
    norm_kernel<<<(rows + 7) / 8, dim3(32, 8), 0, stream>>>(x, norm_weight, normed, rows, inner, eps);
    linear_kernel<<<tiles_of(rows, features), dim3(kTile, kTile), 0, stream>>>(normed, weight, out, rows, inner,
                                                                               features);
}

extern "C" void norm_linear_2(const float* x, const float* norm_weight, const float* weight, float* out, int rows,
                              int inner, int features, float eps, cudaStream_t stream) {
    factor_first_kernel<<<tiles_of(rows, features), dim3(kTile, kTile), 0, stream>>>(x, norm_weight, weight, out, rows,
                                                                                     inner, features, eps);
}

extern "C" void norm_linear_3(const float* x, const float* norm_weight, const float* weight, float* out, int rows,
                              int inner, int features, float eps, cudaStream_t stream) {
    factor_last_kernel<<<tiles_of(rows, features), dim3(kTile, kTile), 0, stream>>>(x, norm_weight, weight, out, rows,
                                                                                    inner, features, eps);
}
