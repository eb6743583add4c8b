// Parallel residual: out = x + attention + mlp, as GPT-NeoX adds both branches of a layer at once.
//
// Two calls of a residual add would read four tensors and write two: six trips to memory. One pass reads three and
// writes one: four trips. The sum also stays in float until the end, so a half-precision result is rounded once.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "llmk/vector.cuh"

constexpr int kThreads = 256;

// Add kWidth elements: each pointer points to the first of them.
template <int kWidth, typename T>
__device__ void add(const T* x, const T* attention, const T* mlp, T* out) {
    const auto a = llmk::load_vector<kWidth>(x);
    const auto b = llmk::load_vector<kWidth>(attention);
    const auto c = llmk::load_vector<kWidth>(mlp);
    llmk::Vector<T, kWidth> sum;
#pragma unroll
    for (int j = 0; j < kWidth; ++j) sum.set(j, a.get(j) + (b.get(j) + c.get(j)));
    llmk::store_vector(out, sum);
}

// x, attention, mlp, out: (n). The head ends at the first 16-byte boundary; the tail follows the last whole vector.
template <int kWidth, typename T>
__global__ void parallel_residual_kernel(const T* x, const T* attention, const T* mlp, T* out, long long n, int head) {
    const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    const long long vectors = (n - head) / kWidth;
    const long long tail = head + vectors * kWidth;
    if (i < vectors) {
        const long long first = head + i * kWidth;
        add<kWidth>(x + first, attention + first, mlp + first, out + first);
    }
    if (i < head) add<1>(x + i, attention + i, mlp + i, out + i);
    if (tail + i < n) add<1>(x + tail + i, attention + tail + i, mlp + tail + i, out + tail + i);
}

template <typename T>
void launch(const T* x, const T* attention, const T* mlp, T* out, long long n, cudaStream_t stream) {
    if (n == 0) return;
    constexpr int kWidth = llmk::kVectorWidth<T>;
    const int past = llmk::bytes_past_16(x);
    if (past == llmk::bytes_past_16(attention) && past == llmk::bytes_past_16(mlp) &&
        past == llmk::bytes_past_16(out)) {
        const int to_boundary = (16 - past) % 16 / static_cast<int>(sizeof(T));
        const int head = n < to_boundary ? static_cast<int>(n) : to_boundary;
        const auto blocks = static_cast<unsigned>((n / kWidth + kThreads) / kThreads);
        parallel_residual_kernel<kWidth><<<blocks, kThreads, 0, stream>>>(x, attention, mlp, out, n, head);
    } else {
        const auto blocks = static_cast<unsigned>((n + kThreads - 1) / kThreads);
        parallel_residual_kernel<1><<<blocks, kThreads, 0, stream>>>(x, attention, mlp, out, n, 0);
    }
}

extern "C" void parallel_residual_f32(const float* x, const float* attention, const float* mlp, float* out, long long n,
                                      cudaStream_t stream) {
    launch(x, attention, mlp, out, n, stream);
}

extern "C" void parallel_residual_f16(const __half* x, const __half* attention, const __half* mlp, __half* out,
                                      long long n, cudaStream_t stream) {
    launch(x, attention, mlp, out, n, stream);
}

extern "C" void parallel_residual_bf16(const __nv_bfloat16* x, const __nv_bfloat16* attention, const __nv_bfloat16* mlp,
                                       __nv_bfloat16* out, long long n, cudaStream_t stream) {
    launch(x, attention, mlp, out, n, stream);
}
