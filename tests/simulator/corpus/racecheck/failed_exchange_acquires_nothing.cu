// A compare_exchange that fails uses its second memory order, which is relaxed here, so it acquires nothing.
// n = 2, start<<<1, 1>>>(); follow<<<2, 1>>>(x, out)
#include <cuda/atomic>

#ifdef CLEAN
constexpr auto kFailure = cuda::std::memory_order_acquire;
#else
constexpr auto kFailure = cuda::std::memory_order_relaxed;
#endif

__device__ cuda::atomic<int, cuda::thread_scope_device> ready;

__global__ void start() { ready.store(0); }

__global__ void follow(const float* x, float* out) {
    if (blockIdx.x == 0) {
        out[0] = 2 * x[0];  // expected finding: between_blocks
        ready.store(1, cuda::std::memory_order_release);
        return;
    }
    int expected = 0;
    while (ready.compare_exchange_strong(expected, 0, cuda::std::memory_order_acq_rel, kFailure)) expected = 0;
    out[1] = out[0] + x[1];  // expected finding: between_blocks
}
