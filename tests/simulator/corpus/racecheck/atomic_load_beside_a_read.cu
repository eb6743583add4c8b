// Some blocks read a word by an atomic or volatile load, others by an ordinary load. This is a race only if a block
// writes.
// n = 96, start<<<1, 1>>>(); scale<<<3, n / 3>>>(x, out, n)
#include <cuda/atomic>

__device__ int limit;

__global__ void start() { limit = 3; }

__global__ void scale(const float* x, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    int factor;
    if (blockIdx.x == 0)
        factor = cuda::atomic_ref<int, cuda::thread_scope_device>(limit).load(cuda::std::memory_order_relaxed);
    else if (blockIdx.x == 1)
        factor = *static_cast<volatile int*>(&limit);
    else
        factor = limit;  // expected finding: between_blocks
    out[i] = factor * x[i];
#ifndef CLEAN
    if (i == 0) atomicAdd(&limit, 1);  // expected finding: between_blocks
#endif
}
