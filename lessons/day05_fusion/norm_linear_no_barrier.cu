// Version 3 of norm_linear.cu with another thread layout: a warp owns a column of outputs, so the row factors
// pass through shared memory. A barrier is missing.
#include <cuda_runtime.h>

constexpr int kTile = 32;

__global__ void factor_last_kernel(const float* x, const float* norm_weight, const float* weight, float* out, int rows,
                                   int inner, int features, float eps) {
    __shared__ float x_tile[kTile][kTile + 1], w_tile[kTile][kTile + 1], factors[kTile];
    const int row0 = blockIdx.y * kTile, feature0 = blockIdx.x * kTile;
    float squares = 0.0f, sum = 0.0f;
    for (int k0 = 0; k0 < inner; k0 += kTile) {
        const int k = k0 + threadIdx.x, row = row0 + threadIdx.y, feature = feature0 + threadIdx.y;
        const float value = row < rows && k < inner ? x[row * inner + k] : 0.0f;
        squares += value * value;
        x_tile[threadIdx.y][threadIdx.x] = value;
        w_tile[threadIdx.y][threadIdx.x] =
            feature < features && k < inner ? weight[feature * inner + k] * norm_weight[k] : 0.0f;
        __syncthreads();
        for (int i = 0; i < kTile; ++i) sum += x_tile[threadIdx.x][i] * w_tile[threadIdx.y][i];
        __syncthreads();
    }
    for (int distance = 16; distance > 0; distance /= 2) squares += __shfl_xor_sync(0xffffffffu, squares, distance);
    if (threadIdx.x == 0) factors[threadIdx.y] = rsqrtf(squares / inner + eps);
    const int row = row0 + threadIdx.x, feature = feature0 + threadIdx.y;
    if (row < rows && feature < features) out[row * features + feature] = sum * factors[threadIdx.x];
}

// x: [rows, inner]   norm_weight: [inner]   weight: [features, inner]   out: [rows, features]
extern "C" void norm_linear(const float* x, const float* norm_weight, const float* weight, float* out, int rows,
                            int inner, int features, float eps, cudaStream_t stream) {
    const dim3 grid((features + kTile - 1) / kTile, (rows + kTile - 1) / kTile);
    factor_last_kernel<<<grid, dim3(kTile, kTile), 0, stream>>>(x, norm_weight, weight, out, rows, inner, features,
                                                                eps);
}
