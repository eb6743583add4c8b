// Gradient clipping after a scaled loss, without a copy to the host: two launches for all gradients of a model.
//
//   gradients: [n], of the loss times loss_scale; divided by it and clipped in place    norm: [1]
//   partial: [kBlocks], working memory
//
// Each gradient is scaled by the norm of all gradients, so no gradient can be written before the last one has been
// read.
// The sums are added in a fixed order, so the result is the same in every run.
#include <cuda_runtime.h>

#include <cmath>

#include "llmk/reduce.cuh"

constexpr int kThreads = 256;
constexpr int kBlocks = 256;  // at most kThreads: each thread of clip_kernel reads one partial sum

// Each block writes the sum of the squares of its gradients.
__global__ void squares_kernel(const float* gradients, float* partial, long long n) {
    float sum = 0.0f;
    const long long step = static_cast<long long>(gridDim.x) * kThreads;
    for (long long i = static_cast<long long>(blockIdx.x) * kThreads + threadIdx.x; i < n; i += step) {
        sum += gradients[i] * gradients[i];
    }
    sum = llmk::block_sum(sum);
    if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

// Every block adds the partial sums itself. If the norm is not finite, the gradients stay as they are, and the
// optimizer skips the step.
__global__ void clip_kernel(float* gradients, const float* partial, float* norm, long long n, float max_norm,
                            float loss_scale) {
    const float sum = llmk::block_sum(threadIdx.x < kBlocks ? partial[threadIdx.x] : 0.0f);
    const float found = sqrtf(sum) / loss_scale;
    if (blockIdx.x == 0 && threadIdx.x == 0) *norm = found;
    if (!isfinite(found)) return;
    const float factor = (found > max_norm ? max_norm / found : 1.0f) / loss_scale;
    const long long step = static_cast<long long>(gridDim.x) * kThreads;
    for (long long i = static_cast<long long>(blockIdx.x) * kThreads + threadIdx.x; i < n; i += step) {
        gradients[i] *= factor;
    }
}

extern "C" void clip(float* gradients, float* partial, float* norm, long long n, float max_norm, float loss_scale,
                     cudaStream_t stream) {
    squares_kernel<<<kBlocks, kThreads, 0, stream>>>(gradients, partial, n);
    clip_kernel<<<kBlocks, kThreads, 0, stream>>>(gradients, partial, norm, n, max_norm, loss_scale);
}
