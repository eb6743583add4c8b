// Sixteen lanes compute one output. All warps together compute mean and variance, from differences to the row's first
// element.
#include <cuda_runtime.h>

#include "llmk/reduce.cuh"

__global__ void tail(const float* x, const float* attention, const float* gain, const float* shift, const float* up,
                     const float* up_bias, const float* down, const float* down_bias, float* out, int c, int f,
                     float eps, bool parallel) {
    extern __shared__ float memory[];
    float *normed = memory, *inner = memory + c;
    __shared__ float sums[2][8];
    const size_t base = static_cast<size_t>(blockIdx.x) * c;
    const float first = parallel ? x[base] : x[base] + attention[base];
    float sum = 0, squares = 0;
    for (int i = threadIdx.x; i < c; i += blockDim.x) {
        float value = x[base + i];
        if (!parallel) value += attention[base + i];
        normed[i] = value;
        sum += value - first;
        squares += (value - first) * (value - first);
    }
    sum = llmk::warp_sum(sum);
    squares = llmk::warp_sum(squares);
    if (threadIdx.x % 32 == 0) {
        sums[0][threadIdx.x / 32] = sum;
        sums[1][threadIdx.x / 32] = squares;
    }
    __syncthreads();
    sum = squares = 0;
    for (int w = 0; w < 8; ++w) {
        sum += sums[0][w];
        squares += sums[1][w];
    }
    const float offset = sum / c, variance = squares / c - offset * offset;
    for (int i = threadIdx.x; i < c; i += blockDim.x) {
        normed[i] = (normed[i] - first - offset) * rsqrtf(variance + eps) * gain[i] + shift[i];
    }
    __syncthreads();
    const int lane = threadIdx.x % 16, team = threadIdx.x / 16, teams = blockDim.x / 16;
    for (int start = 0; start < f;
         start += teams) {  // all lanes of a warp iterate equally often, as the shuffles require
        const int j = start + team;
        float z = 0;
        for (int i = lane; i < c && j < f; i += 16) z += up[static_cast<size_t>(j) * c + i] * normed[i];
        z = llmk::warp_sum<16>(z);
        if (lane == 0 && j < f) {
            z += up_bias[j];
            inner[j] = 0.5f * z * (1.0f + erff(z * 0.70710678f));
        }
    }
    __syncthreads();
    for (int start = 0; start < c; start += teams) {
        const int j = start + team;
        float z = 0;
        for (int i = lane; i < f && j < c; i += 16) z += down[static_cast<size_t>(j) * f + i] * inner[i];
        z = llmk::warp_sum<16>(z);
        if (lane == 0 && j < c) out[base + j] = x[base + j] + (attention[base + j] + (z + down_bias[j]));
    }
}

extern "C" void neox_parallel_residual(const float* x, const float* attention, const float* norm_weight,
                                       const float* norm_bias, const float* up, const float* up_bias, const float* down,
                                       const float* down_bias, float* out, int rows, int hidden, int feed_forward,
                                       float eps, bool parallel, cudaStream_t stream) {
    if (rows == 0 || hidden == 0) return;
    tail<<<rows, 256, (hidden + feed_forward) * 4, stream>>>(x, attention, norm_weight, norm_bias, up, up_bias, down,
                                                             down_bias, out, hidden, feed_forward, eps, parallel);
}
