// A block has two warps. Each warp has its own rows and two buffers, so the warps share only the weights. One barrier
// is
// enough: after the weights are loaded.
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <algorithm>

constexpr int kWarps = 2;

__global__ void norm_rows(const float4* x, const float4* weight, float4* out, int rows, int vectors, float eps) {
    extern __shared__ float4 memory[];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    float4* weights = memory;
    float4* places = memory + (1 + 2 * warp) * vectors;
    for (int i = threadIdx.x; i < vectors; i += 32 * kWarps) weights[i] = weight[i];
    __syncthreads();
    const int step = gridDim.x * kWarps;
    auto fetch = [&](int row, float4* place) {
        for (int i = lane; row < rows && i < vectors; i += 32) {
            __pipeline_memcpy_async(place + i, x + static_cast<long long>(row) * vectors + i, 16);
        }
        __pipeline_commit();
    };
    int row = blockIdx.x * kWarps + warp;
    fetch(row, places);
    for (int turn = 0; row < rows; row += step, turn ^= 1) {
        fetch(row + step, places + (turn ^ 1) * vectors);
        __pipeline_wait_prior(1);
        const float4* here = places + turn * vectors;
        float squares = 0;
        for (int i = lane; i < vectors; i += 32) {
            const float4 v = here[i];
            squares += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
        }
        for (int d = 16; d > 0; d /= 2) squares += __shfl_xor_sync(0xffffffffu, squares, d);
        const float scale = rsqrtf(squares / (4 * vectors) + eps);
        for (int i = lane; i < vectors; i += 32) {
            const float4 v = here[i], w = weights[i];
            out[static_cast<long long>(row) * vectors + i] = {v.x * scale * w.x, v.y * scale * w.y, v.z * scale * w.z,
                                                              v.w * scale * w.w};
        }
    }
}

extern "C" void pipelined_norm(const float* x, const float* weight, float* out, int rows, int cols, float eps,
                               int max_blocks, cudaStream_t stream) {
    if (rows == 0 || cols == 0) return;
    const int bytes = (1 + 2 * kWarps) * cols * 4, wanted = (rows + kWarps - 1) / kWarps;
    cudaFuncSetAttribute(norm_rows, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    norm_rows<<<std::min(wanted, max_blocks), 32 * kWarps, bytes, stream>>>(
        reinterpret_cast<const float4*>(x), reinterpret_cast<const float4*>(weight), reinterpret_cast<float4*>(out),
        rows, cols / 4, eps);
}
