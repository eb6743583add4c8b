// A chain of matmuls for one token in one launch: h = max(W h, 0) for each layer. A block starts to copy weights of the
// next layer before the grid barrier of this layer, so the memory is busy while the blocks wait for each other.
//
//   x, out: [n]     weights: [layers, n, n]     hidden: [2, n], the workspace: layers write its halves in turn
#include <cooperative_groups.h>
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include "llmk/reduce.cuh"

constexpr int kWarps = 8, kThreads = kWarps * 32;
constexpr int kMostSlots = 8;  // rows in flight per warp

// Dynamic shared memory: input [n], then the rows of each warp [kWarps, slots, n].
__global__ void __launch_bounds__(kThreads, 1)
    pipeline_kernel(const float* x, const float* weights, float* hidden, float* out, int layers, int n, int slots) {
    extern __shared__ __align__(16) float memory[];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int first = warp * gridDim.x + blockIdx.x, step = gridDim.x * kWarps;  // this warp's rows of each layer
    const int mine = first < n ? (n - first + step - 1) / step : 0, total = layers * mine;
    float4* input = reinterpret_cast<float4*>(memory);
    float4* ring = reinterpret_cast<float4*>(memory + n + warp * slots * n);

    // Rows are numbered through all layers. Each lane copies the columns that it will use itself.
    int asked = 0, done = 0;
    const auto ask = [&](int limit) {
        for (; asked < min(limit, done + slots); ++asked) {
            const size_t row = static_cast<size_t>(asked / mine) * n + first + asked % mine * step;
            for (int c = lane; c < n / 4; c += 32) {
                __pipeline_memcpy_async(ring + asked % slots * (n / 4) + c, weights + row * n + 4 * c, 16);
            }
            __pipeline_commit();
        }
    };
    for (int layer = 0; layer < layers; ++layer) {
        const int limit = total;
        const float* from = layer == 0 ? x : hidden + (layer + 1) % 2 * n;
        float* to = layer == layers - 1 ? out : hidden + layer % 2 * n;
        for (int c = threadIdx.x; c < n / 4; c += kThreads) input[c] = reinterpret_cast<const float4*>(from)[c];
        __syncthreads();
        for (int i = 0; i < mine; ++i) {
            ask(limit);
            __pipeline_wait_prior(asked - done - 1);
            float sum = 0;
            for (int c = lane; c < n / 4; c += 32) {
                const float4 w = ring[done % slots * (n / 4) + c], h = input[c];
                sum += w.x * h.x + w.y * h.y + w.z * h.z + w.w * h.w;
            }
            sum = llmk::warp_sum(sum);
            if (lane == 0) to[first + i * step] = fmaxf(sum, 0.0f);
            ++done;
        }
        ask(limit);  // before the wait
        if (layer < layers - 1) cooperative_groups::this_grid().sync();
    }
}

extern "C" void persistent_pipeline(const float* x, const float* weights, float* hidden, float* out, int layers, int n,
                                    cudaStream_t stream) {
    if (n == 0) return;
    int device = 0, processors = 0, most_shared = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
    cudaDeviceGetAttribute(&most_shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    const int row_bytes = n * static_cast<int>(sizeof(float));
    int slots = min(kMostSlots, (most_shared - row_bytes) / (kWarps * row_bytes));
    int bytes = (1 + kWarps * slots) * row_bytes;
    cudaFuncSetAttribute(pipeline_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    void* arguments[] = {&x, &weights, &hidden, &out, &layers, &n, &slots};
    cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(pipeline_kernel), dim3(processors), dim3(kThreads),
                                arguments, bytes, stream);
}
