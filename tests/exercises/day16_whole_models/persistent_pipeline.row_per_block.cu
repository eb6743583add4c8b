// All threads of a block compute a row together, each with its own columns. Eight rows are one group of copies, and the
// ring of groups belongs to the block.
#include <cooperative_groups.h>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include "llmk/reduce.cuh"

constexpr int kThreads = 128, kRows = 8, kMostSlots = 8;

__global__ void chain_kernel(const float* x, const float* weights, float* hidden, float* out, int layers, int n,
                             int slots) {
    extern __shared__ __align__(16) float input[];  // [n], then the ring [slots, kRows, n]
    float* ring = input + n;
    const int blocks = gridDim.x, block = blockIdx.x, mine = block < n ? (n - block + blocks - 1) / blocks : 0;
    const int groups = (mine + kRows - 1) / kRows;
    int asked = 0, done = 0;
    const auto ask = [&] {
        for (; asked < min(layers * groups, done + slots); ++asked) {
            const float* matrix = weights + static_cast<size_t>(asked / groups) * n * n;
            for (int r = 0, i = asked % groups * kRows; r < kRows && i < mine; ++r, ++i) {
                const float* row = matrix + static_cast<size_t>(block + i * blocks) * n;
                float* to = ring + (asked % slots * kRows + r) * n;
                for (int c = 4 * threadIdx.x; c < n; c += 4 * kThreads) __pipeline_memcpy_async(to + c, row + c, 16);
            }
            __pipeline_commit();
        }
    };
    for (int layer = 0; layer < layers; ++layer) {
        const float* from = layer == 0 ? x : hidden + (layer + 1) % 2 * n;
        float* to = layer == layers - 1 ? out : hidden + layer % 2 * n;
        for (int c = threadIdx.x; c < n; c += kThreads) input[c] = from[c];
        __syncthreads();
        for (int group = 0; group < groups; ++group, ++done) {
            ask();
            __pipeline_wait_prior(asked - done - 1);
            for (int r = 0, i = group * kRows; r < kRows && i < mine; ++r, ++i) {
                const float* row = ring + (done % slots * kRows + r) * n;
                float sum = 0;
                for (int c = 4 * threadIdx.x; c < n; c += 4 * kThreads) {
                    const float4 w = *reinterpret_cast<const float4*>(row + c);
                    const float4 h = *reinterpret_cast<const float4*>(input + c);
                    sum += w.x * h.x + w.y * h.y + w.z * h.z + w.w * h.w;
                }
                sum = llmk::block_sum(sum);
                if (threadIdx.x == 0) to[block + i * blocks] = fmaxf(sum, 0.0f);
                __syncthreads();  // the sum has been read
            }
        }
        ask();
        cooperative_groups::this_grid().sync();
    }
}

extern "C" void persistent_pipeline(const float* x, const float* weights, float* hidden, float* out, int layers, int n,
                                    cudaStream_t stream) {
    if (n == 0) return;
    int processors = 0;
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0);
    int slots = min(kMostSlots, (200 << 10) / (4 * kRows * n)), bytes = (1 + slots * kRows) * n * 4;
    cudaFuncSetAttribute(chain_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    void* arguments[] = {&x, &weights, &hidden, &out, &layers, &n, &slots};
    cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(chain_kernel), dim3(processors), dim3(kThreads),
                                arguments, bytes, stream);
}
