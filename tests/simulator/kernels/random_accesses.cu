// The test chooses this kernel's shared-memory accesses: two writes and a read, each with an index per thread, with or
// without a barrier after each write. It compares the findings with a model that examines every pair of accesses.
#include <cuda_runtime.h>

constexpr int kSize = 96;

__global__ void accesses(const int* first, const int* second, const int* third, int* out, int barriers) {
    __shared__ int cells[kSize];
    __shared__ int other[kSize];
    const int t = threadIdx.x;
    for (int i = t; i < kSize; i += blockDim.x) cells[i] = other[i] = -1;
    __syncthreads();
    if (first[t] >= 0) cells[first[t]] = t;
    if (barriers & 1) __syncthreads();
    if (second[t] >= 0) cells[second[t]] = t + 1000;
    if (barriers & 2) __syncthreads();
    out[t] = third[t] >= 0 ? cells[third[t]] : other[t % kSize];
}

extern "C" void run(const int* first, const int* second, const int* third, int* out, int threads, int barriers,
                    cudaStream_t stream) {
    accesses<<<1, threads, 0, stream>>>(first, second, third, out, barriers);
}
