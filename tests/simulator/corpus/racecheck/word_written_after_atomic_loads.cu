// Two blocks poll a word with atomic loads. A thread overwrites it with an ordinary write that is ordered after only
// one of them.
// n = 3, start<<<1, 1>>>(); poll<<<3, 1>>>(x, out)
#include <cuda/atomic>

constexpr auto kRelaxed = cuda::std::memory_order_relaxed;
using Atomic = cuda::atomic_ref<int, cuda::thread_scope_device>;

__device__ int ready, seen;

__global__ void start() { ready = seen = 0; }

__global__ void poll(const float* x, float* out) {
    if (blockIdx.x == 2) {
        Atomic(ready).store(1, kRelaxed);
#ifdef CLEAN
        while (Atomic(seen).load(cuda::std::memory_order_acquire) < 2) {
        }
#else
        while (Atomic(seen).load(cuda::std::memory_order_acquire) < 1) {
        }
#endif
        ready = 7;  // expected finding: between_blocks
    } else {
#ifndef CLEAN
        if (blockIdx.x == 1)
            while (Atomic(seen).load(kRelaxed) == 0) {
            }
#endif
        while (Atomic(ready).load(kRelaxed) == 0) {  // expected finding: between_blocks
        }
        Atomic(seen).fetch_add(1, cuda::std::memory_order_release);
    }
    out[blockIdx.x] = 2 * x[blockIdx.x];
}
