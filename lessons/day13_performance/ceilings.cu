// What one GPU can do at the most, each by a kernel that does nothing else; and how long one load takes.
#include <cuda_runtime.h>

constexpr int kChains = 8;  // independent sums of a thread: a multiply-add takes four cycles, and nobody waits for it

__global__ void multiply_adds_kernel(float* out, int rounds) {
    float sums[kChains];
    for (int j = 0; j < kChains; ++j) sums[j] = static_cast<float>(threadIdx.x + j);
    for (int round = 0; round < rounds; ++round) {
#pragma unroll
        for (int j = 0; j < kChains; ++j) sums[j] = sums[j] * 0.999f + 0.001f;
    }
    float sum = 0.0f;
    for (int j = 0; j < kChains; ++j) sum += sums[j];
    if (sum == -1.0f) *out = sum;  // never: but the compiler must not know that nobody looks
    if (threadIdx.x == 0 && blockIdx.x == 0) *out = sum;
}

// Each load says where the next one is: none can begin before the one before it has come. A call goes on where the last one
// stopped, in *out: begun anew it would find what it wants in the cache.
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
