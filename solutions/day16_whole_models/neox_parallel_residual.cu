// The second half of a GPT-NeoX block, for the few rows of a decode step: attention's output and the MLP's are added to
// the residual stream.
//
//   x, attention, out: [rows, hidden]     norm_weight, norm_bias, down_bias: [hidden]     up_bias: [feed_forward]
//   up: [feed_forward, hidden]     down: [hidden, feed_forward]
//
// A block handles one row: first its LayerNorm, then the MLP. One warp computes each output of the MLP; its lanes read
// neighboring elements of a row of the weights.
#include <cuda_runtime.h>

#include "llmk/reduce.cuh"

constexpr int kThreads = 256;

// Return the sum over the lanes of a warp of weights[i] * values[i], on every lane.
__device__ float product(const float* weights, const float* values, int count) {
    float sum = 0;
    for (int i = threadIdx.x % 32; i < count; i += 32) sum += weights[i] * values[i];
    return llmk::warp_sum(sum);
}

__global__ void second_half(const float* x, const float* attention, const float* norm_weight, const float* norm_bias,
                            const float* up, const float* up_bias, const float* down, const float* down_bias,
                            float* out, int hidden, int feed_forward, float eps, bool parallel) {
    extern __shared__ float shared[];
    float* y = shared;           // [hidden], the input of the MLP
    float* h = shared + hidden;  // [feed_forward], the activations inside the MLP
    __shared__ float mean, scale;
    const int warp = threadIdx.x / 32, warps = blockDim.x / 32;
    const size_t row = static_cast<size_t>(blockIdx.x) * hidden;
    x += row;
    attention += row;
    out += row;

    // Parallel residual: attention and the MLP read the same x. Serial: the MLP reads the sum of x and attention.
    for (int i = threadIdx.x; i < hidden; i += blockDim.x) y[i] = parallel ? x[i] : x[i] + attention[i];
    __syncthreads();

    if (warp == 0) {  // sum squared distances from the mean: mean(y^2) - mean^2 would lose digits if the mean is large
        float sum = 0, squares = 0;
        for (int i = threadIdx.x; i < hidden; i += 32) sum += y[i];
        const float average = llmk::warp_sum(sum) / hidden;
        for (int i = threadIdx.x; i < hidden; i += 32) squares += (y[i] - average) * (y[i] - average);
        const float variance = llmk::warp_sum(squares) / hidden;
        if (threadIdx.x == 0) {
            mean = average;
            scale = rsqrtf(variance + eps);
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < hidden; i += blockDim.x) y[i] = (y[i] - mean) * scale * norm_weight[i] + norm_bias[i];
    __syncthreads();

    for (int f = warp; f < feed_forward; f += warps) {
        const float z = product(up + static_cast<size_t>(f) * hidden, y, hidden) + up_bias[f];
        if (threadIdx.x % 32 == 0) h[f] = z * normcdff(z);  // the exact GELU
    }
    __syncthreads();
    for (int i = warp; i < hidden; i += warps) {
        const float mlp = product(down + static_cast<size_t>(i) * feed_forward, h, feed_forward) + down_bias[i];
        if (threadIdx.x % 32 == 0) out[i] = x[i] + attention[i] + mlp;
    }
}

extern "C" void neox_parallel_residual(const float* x, const float* attention, const float* norm_weight,
                                       const float* norm_bias, const float* up, const float* up_bias, const float* down,
                                       const float* down_bias, float* out, int rows, int hidden, int feed_forward,
                                       float eps, bool parallel, cudaStream_t stream) {
    if (rows == 0 || hidden == 0) return;
    const size_t bytes = (static_cast<size_t>(hidden) + feed_forward) * sizeof(float);
    cudaFuncSetAttribute(second_half, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
    second_half<<<rows, kThreads, bytes, stream>>>(x, attention, norm_weight, norm_bias, up, up_bias, down, down_bias,
                                                   out, hidden, feed_forward, eps, parallel);
}
