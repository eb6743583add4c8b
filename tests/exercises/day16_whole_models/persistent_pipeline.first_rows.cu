// Each block has contiguous rows. It copies its first rows of the next layer to shared memory before the wait, and loads
// the others after it.
#include <cooperative_groups.h>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include "llmk/reduce.cuh"

constexpr int kThreads = 256, kAhead = 160 << 10;  // bytes of the next layer

__global__ void chain_kernel(const float* x, const float* weights, float* hidden, float* out, int layers, int n) {
    extern __shared__ __align__(16) float input[];  // [n], then the rows
    float* ahead = input + n;
    const int first = static_cast<int>(static_cast<long long>(n) * blockIdx.x / gridDim.x);
    const int end = static_cast<int>(static_cast<long long>(n) * (blockIdx.x + 1) / gridDim.x);
    const int kept = min(end - first, kAhead / (4 * n)), lane = threadIdx.x % 32;
    const auto copy = [&](int layer) {
        const float* from = weights + (static_cast<size_t>(layer) * n + first) * n;
        for (int i = 4 * threadIdx.x; i < kept * n; i += 4 * kThreads) __pipeline_memcpy_async(ahead + i, from + i, 16);
        __pipeline_commit();
    };
    copy(0);
    for (int layer = 0; layer < layers; ++layer) {
        const float* from = layer == 0 ? x : hidden + (layer + 1) % 2 * n;
        float* to = layer == layers - 1 ? out : hidden + layer % 2 * n;
        for (int c = threadIdx.x; c < n; c += kThreads) input[c] = from[c];
        __pipeline_wait_prior(0);
        __syncthreads();
        for (int i = threadIdx.x / 32; i < end - first; i += kThreads / 32) {
            const float* row = i < kept ? ahead + i * n : weights + (static_cast<size_t>(layer) * n + first + i) * n;
            float sum = 0;
            for (int c = 4 * lane; c < n; c += 128) {
                const float4 w = *reinterpret_cast<const float4*>(row + c),
                             h = *reinterpret_cast<const float4*>(input + c);
                sum += w.x * h.x + w.y * h.y + w.z * h.z + w.w * h.w;
            }
            sum = llmk::warp_sum(sum);
            if (lane == 0) to[first + i] = fmaxf(sum, 0.0f);
        }
        __syncthreads();  // all rows in shared memory have been used
        if (layer == layers - 1) break;
        copy(layer + 1);
        cooperative_groups::this_grid().sync();
    }
}

extern "C" void persistent_pipeline(const float* x, const float* weights, float* hidden, float* out, int layers, int n,
                                    cudaStream_t stream) {
    if (n == 0) return;
    int processors = 0;
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0);
    cudaFuncSetAttribute(chain_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kAhead + 4 * n);
    void* arguments[] = {&x, &weights, &hidden, &out, &layers, &n};
    cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(chain_kernel), dim3(processors), dim3(kThreads),
                                arguments, kAhead + 4 * n, stream);
}
