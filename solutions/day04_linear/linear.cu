// Linear layer: out = x weight^T + bias, as torch.nn.Linear stores its weight, through tiles in shared memory.
#include <cuda_runtime.h>

constexpr int kTile = 32;

// Each thread computes one element of a tile of 32 x 32 outputs. Both inputs pass through shared memory 32 columns at a
// time, so that each value is read from global memory once per tile and not once per output.
//
// x: [rows, in_features]   weight: [out_features, in_features]   bias: [out_features]   out: [rows, out_features]
__global__ void linear_kernel(const float* __restrict__ x, const float* __restrict__ weight,
                              const float* __restrict__ bias, float* __restrict__ out, int rows, int in_features,
                              int out_features) {
    __shared__ float x_tile[kTile][kTile];
    __shared__ float w_tile[kTile][kTile + 1];  // + 1: lane i reads row i, and rows must start in different banks
    const int tiles_across = (out_features + kTile - 1) / kTile;
    const int row0 = static_cast<int>(blockIdx.x / tiles_across) * kTile;
    const int feature0 = static_cast<int>(blockIdx.x % tiles_across) * kTile;
    const int row = row0 + threadIdx.y, feature = feature0 + threadIdx.x;

    float sum = 0.0f;
    for (int k0 = 0; k0 < in_features; k0 += kTile) {
        const int k = k0 + threadIdx.x;
        const int w_row = feature0 + threadIdx.y;
        // Elements outside the matrices are zero.
        x_tile[threadIdx.y][threadIdx.x] =
            row < rows && k < in_features ? x[static_cast<long long>(row) * in_features + k] : 0.0f;
        w_tile[threadIdx.y][threadIdx.x] =
            w_row < out_features && k < in_features ? weight[static_cast<long long>(w_row) * in_features + k] : 0.0f;
        __syncthreads();
        for (int i = 0; i < kTile; ++i) sum += x_tile[threadIdx.y][i] * w_tile[threadIdx.x][i];
        __syncthreads();  // all threads have read these tiles before the next ones overwrite them
    }
    if (row < rows && feature < out_features)
        out[static_cast<long long>(row) * out_features + feature] = sum + bias[feature];
}

// x: [rows, in_features]   weight: [out_features, in_features]   bias: [out_features]   out: [rows, out_features]
extern "C" void linear(const float* x, const float* weight, const float* bias, float* out, int rows, int in_features,
                       int out_features, cudaStream_t stream) {
    if (rows == 0 || out_features == 0) return;
    const long long tiles = (rows + kTile - 1LL) / kTile * ((out_features + kTile - 1LL) / kTile);
    linear_kernel<<<static_cast<unsigned>(tiles), dim3(kTile, kTile), 0, stream>>>(x, weight, bias, out, rows,
                                                                                   in_features, out_features);
}
