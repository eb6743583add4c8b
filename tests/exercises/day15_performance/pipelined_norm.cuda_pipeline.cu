// Uses cuda::pipeline with three stages, each of which holds one row. Each thread keeps its weights in registers.
#include <cuda_runtime.h>

#include <cuda/pipeline>
#include <algorithm>

#include "llmk/reduce.cuh"

constexpr int kThreads = 512, kStages = 3;
constexpr int kMost = 8192 / 4 / kThreads;  // maximum number of float4 vectors of a row that a thread processes

__global__ void __launch_bounds__(kThreads)
    norm_rows(const float4* x, const float4* weight, float4* out, int rows, int vectors, float eps) {
    extern __shared__ float4 stages[];
    float4 weights[kMost];
#pragma unroll
    for (int j = 0; j < kMost; ++j) {
        const int i = threadIdx.x + j * kThreads;
        weights[j] = i < vectors ? weight[i] : float4{};
    }
    auto pipe = cuda::make_pipeline();
    auto fetch = [&](long long row, int stage) {
        pipe.producer_acquire();
        for (int i = threadIdx.x; row < rows && i < vectors; i += kThreads) {
            cuda::memcpy_async(&stages[stage * vectors + i], &x[row * vectors + i], sizeof(float4), pipe);
        }
        pipe.producer_commit();
    };
    for (int s = 0; s < kStages - 1; ++s) fetch(blockIdx.x + static_cast<long long>(s) * gridDim.x, s);
    int stage = 0;
    for (long long row = blockIdx.x; row < rows; row += gridDim.x) {
        fetch(row + (kStages - 1LL) * gridDim.x, (stage + kStages - 1) % kStages);
        pipe.consumer_wait();
        float squares = 0;
        for (int i = threadIdx.x; i < vectors; i += kThreads) {
            const float4 v = stages[stage * vectors + i];
            squares += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
        }
        const float scale = rsqrtf(llmk::block_sum(squares) / (4 * vectors) + eps);
#pragma unroll
        for (int j = 0; j < kMost; ++j) {
            const int i = threadIdx.x + j * kThreads;
            if (i >= vectors) break;
            const float4 v = stages[stage * vectors + i], w = weights[j];
            out[row * vectors + i] = {v.x * scale * w.x, v.y * scale * w.y, v.z * scale * w.z, v.w * scale * w.w};
        }
        pipe.consumer_release();
        __syncthreads();
        stage = (stage + 1) % kStages;
    }
}

extern "C" void pipelined_norm(const float* x, const float* weight, float* out, int rows, int cols, float eps,
                               int max_blocks, cudaStream_t stream) {
    if (rows == 0 || cols == 0) return;
    const int bytes = kStages * cols * 4;
    cudaFuncSetAttribute(norm_rows, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    norm_rows<<<std::min(rows, max_blocks), kThreads, bytes, stream>>>(
        reinterpret_cast<const float4*>(x), reinterpret_cast<const float4*>(weight), reinterpret_cast<float4*>(out),
        rows, cols / 4, eps);
}
