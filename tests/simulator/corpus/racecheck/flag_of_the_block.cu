// A flag is set with block scope, so another block that reads it is not ordered after the writer.
// n = 2, start<<<1, 1>>>(); follow<<<2, 1>>>(x, out)
#include <cuda/atomic>

#ifdef CLEAN
constexpr auto kScope = cuda::thread_scope_device;
#else
constexpr auto kScope = cuda::thread_scope_block;
#endif

__device__ int ready;

__global__ void start() { ready = 0; }

__global__ void follow(const float* x, float* out) {
    if (blockIdx.x == 0) {
        out[0] = 2 * x[0];                                                               // expected finding: between_blocks
        cuda::atomic_ref<int, kScope>(ready).store(1, cuda::std::memory_order_release);  // expected finding: between_blocks
        return;
    }
    cuda::atomic_ref<int, cuda::thread_scope_device> flag(ready);
    while (flag.load(cuda::std::memory_order_acquire) == 0) {  // expected finding: between_blocks
    }
    out[1] = out[0] + x[1];  // expected finding: between_blocks
}
