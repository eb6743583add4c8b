// Blocks add to a tile in turn, as split-K products do: one thread of each block waits for a semaphore and releases it.
// A second kernel uses a lock of cuda::atomic. A third passes words that contain both a value and a flag, so that no
// fence is needed.
// n = 256, start<<<1, 32>>>(); add<<<8, 32>>>(x, out, n); finish<<<1, 32>>>(out, n)
#include <cuda/atomic>

using Atomic = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;
using Pair = cuda::atomic_ref<unsigned long long, cuda::thread_scope_device>;

__device__ unsigned turn, lock;
__device__ float tile[32], locked;
__device__ unsigned long long pairs[8];

__global__ void start() {
    tile[threadIdx.x] = 0;
    if (threadIdx.x < 8) pairs[threadIdx.x] = 0;
    if (threadIdx.x == 0) turn = lock = 0, locked = 0;
}

__device__ unsigned acquire(const unsigned* flag) {
    unsigned value;
    asm volatile("ld.global.acquire.gpu.b32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
    return value;
}

__global__ void add(const float* x, float* out, int n) {
    if (threadIdx.x == 0) {
        while (acquire(&turn) != blockIdx.x) {
        }
    }
    __syncthreads();
    tile[threadIdx.x] += x[blockIdx.x * 32 + threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(&turn), "r"(1) : "memory");

    if (threadIdx.x == 0) {
        while (Atomic(lock).exchange(1, cuda::std::memory_order_acquire) != 0) {
        }
        locked += 1;
        Atomic(lock).store(0, cuda::std::memory_order_release);
        const unsigned long long mine = (1ull << 32) | blockIdx.x;
        Pair(pairs[blockIdx.x]).store(mine, cuda::std::memory_order_relaxed);
        unsigned long long before = 1ull << 32;
        if (blockIdx.x > 0) {
            do {
                before = Pair(pairs[blockIdx.x - 1]).load(cuda::std::memory_order_relaxed);
            } while (before >> 32 == 0);
        }
        out[blockIdx.x] = static_cast<float>(before & 0xffffffffu);
    }
}

__global__ void finish(float* out, int n) {
    for (int i = 8 + threadIdx.x; i < n; i += blockDim.x) out[i] = tile[i % 32] + locked;
}
