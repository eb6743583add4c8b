// Residual add: out = x + residual, for f32, f16 and bf16, any length and any alignment.
//
// The addition costs no time: the kernel is bound by two reads and one write per element. So each thread moves 16 bytes
// per access, which needs addresses that are multiples of 16. If the three tensors have the same misalignment, the
// elements before the first aligned address and after the last whole vector are added one by one (the "head" and the
// "tail"). If the misalignments differ, no shift aligns all three, and every access is one element wide.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "llmk/vector.cuh"

constexpr int kThreads = 256;

// Add kWidth elements: x, residual and out point to the first of them. The sum is computed in float and rounded once.
template <int kWidth, typename T>
__device__ void add(const T* x, const T* residual, T* out) {
    const auto a = llmk::load_vector<kWidth>(x);
    const auto b = llmk::load_vector<kWidth>(residual);
    llmk::Vector<T, kWidth> sum;
#pragma unroll
    for (int j = 0; j < kWidth; ++j) sum.set(j, a.get(j) + b.get(j));
    llmk::store_vector(out, sum);
}

// x, residual, out: (n). Thread i adds vector i, and may add one element of the head and one of the tail.
template <int kWidth, typename T>
__global__ void residual_add_kernel(const T* x, const T* residual, T* out, long long n, int head) {
    const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
    const long long vectors = (n - head) / kWidth;
    const long long tail = head + vectors * kWidth;  // where the last, incomplete vector begins
    if (i < vectors) {
        const long long first = head + i * kWidth;
        add<kWidth>(x + first, residual + first, out + first);
    }
    if (i < head) add<1>(x + i, residual + i, out + i);
    if (tail + i < n) add<1>(x + tail + i, residual + tail + i, out + tail + i);
}

template <typename T>
void launch(const T* x, const T* residual, T* out, long long n, cudaStream_t stream) {
    if (n == 0) return;  // a launch with 0 blocks is an error
    constexpr int kWidth = llmk::kVectorWidth<T>;
    const int past = llmk::bytes_past_16(x);
    if (past == llmk::bytes_past_16(residual) && past == llmk::bytes_past_16(out)) {
        const int to_boundary = (16 - past) % 16 / static_cast<int>(sizeof(T));
        const int head = n < to_boundary ? static_cast<int>(n) : to_boundary;
        // Launch at least one block, whose first threads add the head and the tail. Each is shorter than a vector.
        const long long blocks = (n / kWidth + kThreads) / kThreads;
        residual_add_kernel<kWidth><<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(x, residual, out, n, head);
    } else {
        const long long blocks = (n + kThreads - 1) / kThreads;
        residual_add_kernel<1><<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(x, residual, out, n, 0);
    }
}

extern "C" void residual_add_f32(const float* x, const float* residual, float* out, long long n, cudaStream_t stream) {
    launch(x, residual, out, n, stream);
}

extern "C" void residual_add_f16(const __half* x, const __half* residual, __half* out, long long n,
                                 cudaStream_t stream) {
    launch(x, residual, out, n, stream);
}

extern "C" void residual_add_bf16(const __nv_bfloat16* x, const __nv_bfloat16* residual, __nv_bfloat16* out,
                                  long long n, cudaStream_t stream) {
    launch(x, residual, out, n, stream);
}
