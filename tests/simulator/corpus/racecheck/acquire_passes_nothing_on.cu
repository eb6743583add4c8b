// Block 1 acquires a flag of block 0 and sets another flag without a release. So block 2 does not see block 0's write.
// n = 3, start<<<1, 1>>>(); pass_on<<<3, 1>>>(x, out)
#include <cuda/atomic>

#ifdef CLEAN
constexpr auto kPassOn = cuda::std::memory_order_release;
#else
constexpr auto kPassOn = cuda::std::memory_order_relaxed;
#endif

__device__ cuda::atomic<int, cuda::thread_scope_device> first, second;

__global__ void start() {
    first.store(0);
    second.store(0);
}

__global__ void pass_on(const float* x, float* out) {
    if (blockIdx.x == 0) {
        out[0] = x[0];  // expected finding: between_blocks
        first.store(1, cuda::std::memory_order_release);
    } else if (blockIdx.x == 1) {
        while (first.load(cuda::std::memory_order_acquire) == 0) {
        }
        out[1] = out[0] + x[1];  // expected finding: between_blocks
        second.store(1, kPassOn);
    } else {
        while (second.load(cuda::std::memory_order_acquire) == 0) {
        }
        out[2] = out[0] + out[1];  // expected finding: between_blocks
    }
}
