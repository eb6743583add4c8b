// The test chooses this kernel's global-memory accesses. Each thread makes three, which are reads, writes or atomic
// additions. Between two of its accesses there may be a block barrier. The test compares the findings with a model that
// examines every pair of accesses.
#include <cuda_runtime.h>

constexpr int kWrite = 1, kAdd = 2;
constexpr int kStep = 1 << 20;  // larger than all written values, so no sum equals a written value

__device__ int touch(int* cells, int index, int kind, int value) {
    if (index < 0) return 0;
    if (kind == kAdd) return atomicAdd(&cells[index], kStep);
    if (kind == kWrite) return cells[index] = value;
    return cells[index];
}

__global__ void accesses(const int* first, const int* second, const int* third, int* cells, int* out, int kinds,
                         int barriers) {
    const int t = blockIdx.x * blockDim.x + threadIdx.x;
    int sum = touch(cells, first[t], kinds % 3, 1 + t);
    if (barriers & 1) __syncthreads();
    sum += touch(cells, second[t], kinds / 3 % 3, 1001 + t);
    if (barriers & 2) __syncthreads();
    out[t] = sum + touch(cells, third[t], kinds / 9, 2001 + t);
}

extern "C" void run(const int* first, const int* second, const int* third, int* cells, int* out, int blocks,
                    int threads, int kinds, int barriers, cudaStream_t stream) {
    accesses<<<blocks, threads, 0, stream>>>(first, second, third, cells, out, kinds, barriers);
}
