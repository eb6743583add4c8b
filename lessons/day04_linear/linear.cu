// Linear layer, version by version: out = x weight^T + bias.
//
// Version 1: one thread per output, all operands from global memory.
// Version 2: tiles of 32 x 32 in shared memory; reading the weight tile has 32-way bank conflicts.
// Version 3: the same with padding.
// Version 4: 4 x 4 outputs per thread in registers, tiles of 64 x 64 outputs.
#include <cuda_runtime.h>

// ---------------------------------------------------------------------------------------------------------------------
// The kernels. x is (rows, inner), weight is (features, inner), bias is (features), out is (rows, features).

__global__ void linear_kernel1(const float* x, const float* weight, const float* bias, float* out, int rows, int inner,
                               int features) {
    const int row = blockIdx.y * 32 + threadIdx.y, feature = blockIdx.x * 32 + threadIdx.x;
    if (row >= rows || feature >= features) return;
    float sum = bias[feature];
    for (int k = 0; k < inner; ++k) sum += x[row * inner + k] * weight[feature * inner + k];
    out[row * features + feature] = sum;
}

// The value at (row, col), or zero outside the matrix.
__device__ float at(const float* matrix, int row, int rows, int col, int cols) {
    return row < rows && col < cols ? matrix[row * cols + col] : 0.0f;
}

template <int WIDTH>
__global__ void linear_kernel2(const float* x, const float* weight, const float* bias, float* out, int rows, int inner,
                               int features) {
    __shared__ float x_tile[32][32];
    __shared__ float w_tile[32][WIDTH];
    const int row0 = blockIdx.y * 32, feature0 = blockIdx.x * 32;
    float sum = 0.0f;
    for (int k0 = 0; k0 < inner; k0 += 32) {
        x_tile[threadIdx.y][threadIdx.x] = at(x, row0 + threadIdx.y, rows, k0 + threadIdx.x, inner);
        w_tile[threadIdx.y][threadIdx.x] = at(weight, feature0 + threadIdx.y, features, k0 + threadIdx.x, inner);
        __syncthreads();  // the tiles are complete
        for (int k = 0; k < 32; ++k) sum += x_tile[threadIdx.y][k] * w_tile[threadIdx.x][k];
        __syncthreads();  // all threads have used the tiles
    }
    const int row = row0 + threadIdx.y, feature = feature0 + threadIdx.x;
    if (row < rows && feature < features) out[row * features + feature] = sum + bias[feature];
}

// 256 threads, 16 x 16. The tiles are k-major, so that the four values of a thread are one float4.
__global__ void linear_kernel4(const float* x, const float* weight, const float* bias, float* out, int rows, int inner,
                               int features) {
    __shared__ __align__(16) float x_tile[16][68];  // [k][row], 4 floats of padding
    __shared__ __align__(16) float w_tile[16][68];  // [k][feature]
    const int row0 = blockIdx.y * 64, feature0 = blockIdx.x * 64;
    const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    float sum[4][4] = {};
    for (int k0 = 0; k0 < inner; k0 += 16) {
        for (int i = threadIdx.x; i < 64 * 16; i += 256) {
            x_tile[i % 16][i / 16] = at(x, row0 + i / 16, rows, k0 + i % 16, inner);
            w_tile[i % 16][i / 16] = at(weight, feature0 + i / 16, features, k0 + i % 16, inner);
        }
        __syncthreads();
        for (int k = 0; k < 16; ++k) {
            const float4 a = *reinterpret_cast<const float4*>(&x_tile[k][4 * ty]);
            const float4 b = *reinterpret_cast<const float4*>(&w_tile[k][4 * tx]);
            const float rows4[4] = {a.x, a.y, a.z, a.w}, features4[4] = {b.x, b.y, b.z, b.w};
            for (int i = 0; i < 4; ++i) {
                for (int j = 0; j < 4; ++j) sum[i][j] += rows4[i] * features4[j];
            }
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; ++i) {
        for (int j = 0; j < 4; ++j) {
            const int row = row0 + 4 * ty + i, feature = feature0 + 4 * tx + j;
            if (row < rows && feature < features) out[row * features + feature] = sum[i][j] + bias[feature];
        }
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// The launchers.

dim3 tiles_for(int rows, int features, int tile) {
    return dim3((features + tile - 1) / tile, (rows + tile - 1) / tile);
}

extern "C" void linear_1(const float* x, const float* weight, const float* bias, float* out, int rows, int inner,
                         int features, cudaStream_t stream) {
    linear_kernel1<<<tiles_for(rows, features, 32), dim3(32, 32), 0, stream>>>(x, weight, bias, out, rows, inner,
                                                                               features);
}

extern "C" void linear_2(const float* x, const float* weight, const float* bias, float* out, int rows, int inner,
                         int features, cudaStream_t stream) {
    linear_kernel2<32>
        <<<tiles_for(rows, features, 32), dim3(32, 32), 0, stream>>>(x, weight, bias, out, rows, inner, features);
}

extern "C" void linear_3(const float* x, const float* weight, const float* bias, float* out, int rows, int inner,
                         int features, cudaStream_t stream) {
    linear_kernel2<33>
        <<<tiles_for(rows, features, 32), dim3(32, 32), 0, stream>>>(x, weight, bias, out, rows, inner, features);
}

extern "C" void linear_4(const float* x, const float* weight, const float* bias, float* out, int rows, int inner,
                         int features, cudaStream_t stream) {
    linear_kernel4<<<tiles_for(rows, features, 64), 256, 0, stream>>>(x, weight, bias, out, rows, inner, features);
}
