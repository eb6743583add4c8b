// The kernels of a decoder layer that use neither positions nor a cache, in f32 and without optimizations: one row per
// sequence. Day 16 combines them into a layer; the earlier days derive the fast versions.
#pragma once

#include <cuda_runtime.h>

#include "llmk/reduce.cuh"

namespace llmk {

// Embedding: x[b] = table[ids[b]].
__global__ void embed(const int* ids, const float* table, float* x, int hidden) {
    const size_t row = static_cast<size_t>(blockIdx.x) * hidden, from = static_cast<size_t>(ids[blockIdx.x]) * hidden;
    for (int i = threadIdx.x; i < hidden; i += blockDim.x) x[row + i] = table[from + i];
}

// RMSNorm: out[b] = x[b] / sqrt(mean(x[b]^2) + eps) * weight.
__global__ void rms_norm(const float* x, const float* weight, float* out, int hidden, float eps) {
    const size_t row = static_cast<size_t>(blockIdx.x) * hidden;
    float squares = 0;
    for (int i = threadIdx.x; i < hidden; i += blockDim.x) squares += x[row + i] * x[row + i];
    const float scale = rsqrtf(block_sum(squares) / hidden + eps);
    for (int i = threadIdx.x; i < hidden; i += blockDim.x) out[row + i] = x[row + i] * scale * weight[i];
}

// Linear layer: out[b, n] = in[b] . weight[n] + bias[n], with one warp for each n. `bias` may be nullptr.
__global__ void linear(const float* in, const float* weight, const float* bias, float* out, int in_features,
                       int out_features) {
    const int n = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (n >= out_features) return;
    in += static_cast<size_t>(blockIdx.y) * in_features;
    weight += static_cast<size_t>(n) * in_features;
    float sum = 0;
    for (int k = lane; k < in_features; k += 32) sum += in[k] * weight[k];
    sum = warp_sum(sum);
    if (lane == 0) out[static_cast<size_t>(blockIdx.y) * out_features + n] = sum + (bias ? bias[n] : 0.0f);
}

// SwiGLU: out[b] = silu(gate[b]) * up[b]. Rows of gate and of up are row_size floats apart.
__global__ void swiglu(const float* gate, const float* up, float* out, int row_size, int feed_forward) {
    const size_t row = static_cast<size_t>(blockIdx.y) * row_size;
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= feed_forward) return;
    const float z = gate[row + i];
    out[static_cast<size_t>(blockIdx.y) * feed_forward + i] = z / (1.0f + expf(-z)) * up[row + i];
}

// Add: x += y.
__global__ void add(float* x, const float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += y[i];
}

}  // namespace llmk
