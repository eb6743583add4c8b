// The ceilings of a GPU, each measured by a kernel that does nothing else; and the latency of a load.
#include <cuda_runtime.h>

constexpr int kChains = 8;  // independent sums per thread: the latency of a multiply-add, four cycles, is hidden

__global__ void multiply_adds_kernel(float* out, int rounds) {
    float sums[kChains];
    for (int j = 0; j < kChains; ++j) sums[j] = static_cast<float>(threadIdx.x + j);
    for (int round = 0; round < rounds; ++round) {
#pragma unroll
        for (int j = 0; j < kChains; ++j) sums[j] = sums[j] * 0.999f + 0.001f;
    }
    float sum = 0.0f;
    for (int j = 0; j < kChains; ++j) sum += sums[j];
    if (sum == -1.0f) *out = sum;  // never true, but the compiler cannot know that
    if (threadIdx.x == 0 && blockIdx.x == 0) *out = sum;
}

// Pointer chasing: each load returns the address of the next, so the loads are serialized. A call continues at *out,
// where the last one stopped; starting over would find the data in the cache.
__global__ void chase_kernel(const int* next, int* out, int hops) {
    int place = *out;
    for (int hop = 0; hop < hops; ++hop) place = next[place];
    *out = place;
}

extern "C" void multiply_adds(float* out, int blocks, int rounds, cudaStream_t stream) {
    multiply_adds_kernel<<<blocks, 256, 0, stream>>>(out, rounds);
}

extern "C" void chase(const int* next, int* out, int hops, cudaStream_t stream) {
    chase_kernel<<<1, 1, 0, stream>>>(next, out, hops);
}
