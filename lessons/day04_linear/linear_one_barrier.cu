// The tiled linear layer without its second barrier: threads may store the next tiles while others still read.
#include <cuda_runtime.h>

// x is (rows, inner), weight is (features, inner), out is (rows, features); every size is a multiple of 32.
__global__ void linear_kernel(const float* x, const float* weight, float* out, int inner, int features) {
    __shared__ float x_tile[32][32];
    __shared__ float w_tile[32][33];
    float sum = 0.0f;
    for (int k0 = 0; k0 < inner; k0 += 32) {
        x_tile[threadIdx.y][threadIdx.x] = x[(blockIdx.y * 32 + threadIdx.y) * inner + k0 + threadIdx.x];
        w_tile[threadIdx.y][threadIdx.x] = weight[(blockIdx.x * 32 + threadIdx.y) * inner + k0 + threadIdx.x];
        __syncthreads();
        for (int k = 0; k < 32; ++k) sum += x_tile[threadIdx.y][k] * w_tile[threadIdx.x][k];
    }
    out[(blockIdx.y * 32 + threadIdx.y) * features + blockIdx.x * 32 + threadIdx.x] = sum;
}

extern "C" void linear(const float* x, const float* weight, float* out, int rows, int inner, int features,
                       cudaStream_t stream) {
    linear_kernel<<<dim3(features / 32, rows / 32), dim3(32, 32), 0, stream>>>(x, weight, out, inner, features);
}
