// RMSNorm with one block of 256 threads per row. Warp shuffles compute the sums. x and out are (rows, columns).
#include <cuda_runtime.h>

__device__ float warp_sum(float value) {
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffu, value, offset);
    return value;
}

__global__ void rms_norm_kernel(const float* x, const float* weight, float* out, int columns, float epsilon) {
    __shared__ float partial[32];
    const float* row = x + static_cast<long long>(blockIdx.x) * columns;
    float* result = out + static_cast<long long>(blockIdx.x) * columns;

    float sum = 0.0f;
    for (int i = threadIdx.x; i < columns; i += blockDim.x) sum += row[i] * row[i];
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = threadIdx.x % 32 < blockDim.x / 32 ? partial[threadIdx.x % 32] : 0.0f;
    sum = warp_sum(sum);

    const float factor = rsqrtf(sum / columns + epsilon);
    for (int i = threadIdx.x; i < columns; i += blockDim.x) result[i] = row[i] * factor * weight[i];
}

extern "C" void shuffled_rms_norm(const float* x, const float* weight, float* out, int rows, int columns, float epsilon,
                                  cudaStream_t stream) {
    rms_norm_kernel<<<rows, 256, 0, stream>>>(x, weight, out, columns, epsilon);
}
