// Correct alternative: both tiles are k-major, so that the inner loop reads their rows; the padding avoids bank
// conflicts of the stores
#include <cuda_runtime.h>

// x: [rows, inner]   weight: [features, inner]   bias: [features]   out: [rows, features]
__global__ void linear_kernel(const float* x, const float* weight, const float* bias, float* out, int rows, int inner,
                              int features) {
    __shared__ float a[32][33], b[32][33];  // [k][row], [k][feature]
    const int row = blockIdx.y * 32 + threadIdx.y, feature = blockIdx.x * 32 + threadIdx.x;
    const int loaded_feature = blockIdx.x * 32 + threadIdx.y;
    float sum = feature < features ? bias[feature] : 0.0f;
    for (int k0 = 0; k0 < inner; k0 += 32) {
        const int k = k0 + threadIdx.x;
        a[threadIdx.x][threadIdx.y] = k < inner && row < rows ? x[(size_t)row * inner + k] : 0.0f;
        b[threadIdx.x][threadIdx.y] =
            k < inner && loaded_feature < features ? weight[(size_t)loaded_feature * inner + k] : 0.0f;
        __syncthreads();
        for (int i = 0; i < 32; ++i) sum = fmaf(a[i][threadIdx.y], b[i][threadIdx.x], sum);
        __syncthreads();
    }
    if (row < rows && feature < features) out[(size_t)row * features + feature] = sum;
}

extern "C" void linear(const float* x, const float* weight, const float* bias, float* out, int rows, int in_features,
                       int out_features, cudaStream_t stream) {
    if (rows == 0 || out_features == 0) return;
    const dim3 grid((out_features + 31) / 32, (rows + 31) / 32);
    linear_kernel<<<grid, dim3(32, 32), 0, stream>>>(x, weight, bias, out, rows, in_features, out_features);
}
