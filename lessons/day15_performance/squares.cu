// The sum of the squares of n floats, as in gradient clipping and RMSNorm: a kernel that only reads. Each version
// writes one partial sum per block; add_partials adds them.
//
//   x: [n], 16-byte aligned     partials: [blocks]     out: [1]
#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include <type_traits>

#include "llmk/reduce.cuh"

constexpr int kThreads = 256;

// Version 1: each thread has one load of 4 bytes in flight and waits for it. The loop is not unrolled (#pragma unroll
// 1).
__global__ void __launch_bounds__(kThreads) square_sums(const float* x, float* partials, int n) {
    float sum = 0.0f;
#pragma unroll 1
    for (int i = blockIdx.x * kThreads + threadIdx.x; i < n; i += gridDim.x * kThreads) sum += x[i] * x[i];
    sum = llmk::block_sum(sum);
    if (threadIdx.x == 0) partials[blockIdx.x] = sum;
}

// kWidth neighboring floats, which one load fetches.
template <int kWidth>
struct Wide {
    using Bits = std::conditional_t<kWidth == 4, float4, std::conditional_t<kWidth == 2, float2, float>>;
    Bits bits;
    __device__ float squares() const {
        if constexpr (kWidth == 1) return bits * bits;
        if constexpr (kWidth == 2) return bits.x * bits.x + bits.y * bits.y;
        if constexpr (kWidth == 4) return (bits.x * bits.x + bits.y * bits.y) + (bits.z * bits.z + bits.w * bits.w);
    }
};

// Square the elements after the last whole vector: fewer than four, one per thread.
template <int kWidth>
__device__ float squares_of_rest(const float* x, int n) {
    const int rest = n % kWidth;
    const float value = blockIdx.x == 0 && threadIdx.x < rest ? x[n - rest + threadIdx.x] : 0.0f;
    return value * value;
}

// Versions 2 to 4: kUnroll loads of kWidth floats, all issued before the first is used.
template <int kWidth, int kUnroll>
__global__ void __launch_bounds__(kThreads) square_sums_wide(const float* x, float* partials, int n) {
    const auto* from = reinterpret_cast<const Wide<kWidth>*>(x);
    const int vectors = n / kWidth, threads = gridDim.x * kThreads;
    int i = blockIdx.x * kThreads + threadIdx.x;
    float sum = squares_of_rest<kWidth>(x, n);
#pragma unroll 1
    for (; i < vectors - (kUnroll - 1) * threads; i += kUnroll * threads) {
        Wide<kWidth> held[kUnroll];
#pragma unroll
        for (int j = 0; j < kUnroll; ++j) held[j] = from[i + j * threads];
#pragma unroll
        for (int j = 0; j < kUnroll; ++j) sum += held[j].squares();
    }
#pragma unroll 1
    for (; i < vectors; i += threads) {
        const Wide<kWidth> held = from[i];  // one load, not one per float
        sum += held.squares();
    }
    sum = llmk::block_sum(sum);
    if (threadIdx.x == 0) partials[blockIdx.x] = sum;
}

// Version 5: a ring of asynchronous copies. Data in flight occupies shared memory and no registers. A thread reads only
// what it copied itself, so no barrier is needed.
constexpr int kStages = 8;  // vectors per thread: seven in flight while one is used
__global__ void __launch_bounds__(kThreads) square_sums_copied(const float* x, float* partials, int n) {
    __shared__ float4 ring[kStages][kThreads];
    const auto* from = reinterpret_cast<const float4*>(x);
    const int vectors = n / 4, threads = gridDim.x * kThreads, first = blockIdx.x * kThreads + threadIdx.x;
    auto fetch = [&](int turn) {
        const int i = first + turn * threads;
        if (i < vectors) __pipeline_memcpy_async(&ring[turn % kStages][threadIdx.x], from + i, sizeof(float4));
        __pipeline_commit();  // possibly an empty group: the wait below counts groups
    };
#pragma unroll
    for (int turn = 0; turn < kStages - 1; ++turn) fetch(turn);
    float sum = squares_of_rest<4>(x, n);
    for (int turn = 0; first + turn * threads < vectors; ++turn) {
        fetch(turn + kStages - 1);
        __pipeline_wait_prior(kStages - 1);
        const Wide<4> held = {ring[turn % kStages][threadIdx.x]};
        sum += held.squares();
    }
    sum = llmk::block_sum(sum);
    if (threadIdx.x == 0) partials[blockIdx.x] = sum;
}

__global__ void add_partials(const float* partials, float* out, int blocks) {
    float sum = 0.0f;
    for (int i = threadIdx.x; i < blocks; i += blockDim.x) sum += partials[i];
    sum = llmk::block_sum(sum);
    if (threadIdx.x == 0) *out = sum;
}

// Return the version with these floats per load and loads at a time; nullptr if there is none.
using Version = void (*)(const float*, float*, int);
template <int kWidth>
Version unrolled(int loads) {
    switch (loads) {
        case 1:
            return square_sums_wide<kWidth, 1>;
        case 2:
            return square_sums_wide<kWidth, 2>;
        case 4:
            return square_sums_wide<kWidth, 4>;
        case 8:
            return square_sums_wide<kWidth, 8>;
    }
    return nullptr;
}
Version version(int width, int loads) {
    if (loads == 0) return width == 1 ? square_sums : square_sums_copied;
    return width == 1   ? unrolled<1>(loads)
           : width == 2 ? unrolled<2>(loads)
           : width == 4 ? unrolled<4>(loads)
                        : nullptr;
}

// loads = 0: version 1 for width 1, version 5 for width 4.
extern "C" void squares(const float* x, float* partials, float* out, int n, int width, int loads, int blocks,
                        cudaStream_t stream) {
    const Version square_sums_chosen = version(width, loads);
    if (!square_sums_chosen) return;
    square_sums_chosen<<<blocks, kThreads, 0, stream>>>(x, partials, n);
    add_partials<<<1, 1024, 0, stream>>>(partials, out, blocks);
}

__global__ void tell(int* to, int a, int b) {
    to[0] = a;
    to[1] = b;
}

// found[0]: resident blocks per SM with these threads and bytes of dynamic shared memory. found[1]: registers per
// thread, 0 if unknown.
extern "C" void residents(int* found, int width, int loads, int threads, int shared_bytes, cudaStream_t stream) {
    int blocks = 0;
    cudaFuncAttributes attributes{};
    cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, version(width, loads), threads, shared_bytes);
    cudaFuncGetAttributes(&attributes, version(width, loads));
    tell<<<1, 1, 0, stream>>>(found, blocks, attributes.numRegs);
}
