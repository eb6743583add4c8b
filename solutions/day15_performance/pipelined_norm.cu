// RMSNorm of each row: out = x / sqrt(mean(x^2) + eps) * weight.
//
//   x, out: [rows, cols]     weight: [cols]     cols: a multiple of 4, at most 8192
//
// While a block reduces and stores one row, the next one is copied to the other of two buffers in shared memory.
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <algorithm>

#include "llmk/reduce.cuh"

constexpr int kThreads = 256;

__device__ float sum_of_squares(float4 v) { return v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w; }

__device__ float4 scaled(float4 v, float scale, float4 w) {
    return make_float4(v.x * scale * w.x, v.y * scale * w.y, v.z * scale * w.z, v.w * scale * w.w);
}

// Block b handles rows b, b + gridDim.x, b + 2 gridDim.x, ... A row is cols / 4 vectors of 16 bytes.
__global__ void __launch_bounds__(kThreads)
    norm_rows(const float4* x, const float4* weight, float4* out, int rows, int vectors, float eps) {
    extern __shared__ float4 memory[];
    float4* weights = memory + 2 * vectors;  // the weights lie after the two buffers of rows

    // Start copying this thread's vectors of a row. Past the last row the group is empty, but it exists, so the wait
    // below may always leave one group pending.
    auto fetch = [&](int r, int place) {
        if (r < rows) {
            const float4* from = x + static_cast<long long>(r) * vectors;
            for (int i = threadIdx.x; i < vectors; i += kThreads) {
                __pipeline_memcpy_async(memory + place * vectors + i, from + i, sizeof(float4));
            }
        }
        __pipeline_commit();
    };

    for (int i = threadIdx.x; i < vectors; i += kThreads) {
        __pipeline_memcpy_async(weights + i, weight + i, sizeof(float4));  // part of the commit group of the first row
    }
    fetch(blockIdx.x, 0);
    for (int r = blockIdx.x, place = 0; r < rows; r += gridDim.x, place = 1 - place) {
        fetch(r + gridDim.x, 1 - place);
        __pipeline_wait_prior(1);  // this row has arrived; the next one may be pending

        // A thread reads only what it copied itself, so no barrier is needed.
        const float4* row = memory + place * vectors;
        float squares = 0.0f;
        for (int i = threadIdx.x; i < vectors; i += kThreads) squares += sum_of_squares(row[i]);
        const float scale = rsqrtf(llmk::block_sum(squares) / (4.0f * vectors) + eps);
        float4* to = out + static_cast<long long>(r) * vectors;
        for (int i = threadIdx.x; i < vectors; i += kThreads) to[i] = scaled(row[i], scale, weights[i]);
        __syncthreads();  // all threads have left block_sum before it is called again
    }
}

extern "C" void pipelined_norm(const float* x, const float* weight, float* out, int rows, int cols, float eps,
                               int max_blocks, cudaStream_t stream) {
    if (rows == 0 || cols == 0) return;
    const int bytes = 3 * cols * static_cast<int>(sizeof(float));  // two rows and the weights
    cudaFuncSetAttribute(norm_rows, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    norm_rows<<<std::min(rows, max_blocks), kThreads, bytes, stream>>>(
        reinterpret_cast<const float4*>(x), reinterpret_cast<const float4*>(weight), reinterpret_cast<float4*>(out),
        rows, cols / 4, eps);
}
