// Block 1 increments a flag that block 0 released. An atomic increment would pass the release on to block 2, but a
// store does not.
// n = 3, start<<<1, 1>>>(); count<<<3, 1>>>(x, out)
#include <cuda/atomic>

constexpr auto kRelaxed = cuda::std::memory_order_relaxed;

__device__ cuda::atomic<int, cuda::thread_scope_device> step, done;

__global__ void start() {
    step.store(0);
    done.store(0);
}

__global__ void count(const float* x, float* out) {
    if (blockIdx.x == 0) {
        out[0] = 2 * x[0];  // expected finding: between_blocks
        step.store(1, cuda::std::memory_order_release);
    } else if (blockIdx.x == 1) {
        while (step.load(kRelaxed) == 0) {
        }
        out[1] = x[1];
#ifdef CLEAN
        step.fetch_add(1, kRelaxed);
#else
        step.store(2, kRelaxed);
#endif
        done.store(1, kRelaxed);
    } else {
        while (done.load(kRelaxed) == 0) {
        }
        if (step.load(cuda::std::memory_order_acquire) == 2) out[2] = out[0] + x[2];  // expected finding: between_blocks
    }
}
