// A flag is set and read with relaxed order, which does not order the data.
// n = 64, clear<<<1, 64>>>(); chain<<<n, 1>>>(x, out, n)
#include <cuda/atomic>

#ifdef CLEAN
constexpr auto kSet = cuda::std::memory_order_release;
constexpr auto kRead = cuda::std::memory_order_acquire;
#else
constexpr auto kSet = cuda::std::memory_order_relaxed;
constexpr auto kRead = cuda::std::memory_order_relaxed;
#endif

__device__ int flags[64];

__global__ void clear() { flags[threadIdx.x] = 0; }

__global__ void chain(const float* x, float* out, int n) {
    const int b = blockIdx.x;
    float before = 0;
    if (b > 0) {
        cuda::atomic_ref<int, cuda::thread_scope_device> flag(flags[b - 1]);
        while (flag.load(kRead) == 0) {
        }
        before = out[b - 1];  // expected finding: between_blocks
    }
    out[b] = before + x[b];  // expected finding: between_blocks
    cuda::atomic_ref<int, cuda::thread_scope_device>(flags[b]).store(1, kSet);
}
