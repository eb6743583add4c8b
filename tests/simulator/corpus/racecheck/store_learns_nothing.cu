// A store to a flag does not observe the value that another block stored, so it is not ordered after that block.
// n = 2, start<<<1, 1>>>(x, out, n); follow<<<2, 1>>>(x, out)
#include <cuda/atomic>

constexpr auto kPublished = cuda::std::memory_order_release;
constexpr auto kRelaxed = cuda::std::memory_order_relaxed;

__device__ int word;

__global__ void start(const float* x, float* out, int n) {
    word = 0;
    for (int i = 0; i < n; ++i) out[i] = x[i];
}

__global__ void follow(const float* x, float* out) {
    cuda::atomic_ref<int, cuda::thread_scope_device> flag(word);
    if (blockIdx.x == 0) {
        out[0] = 2 * x[0];  // expected finding: between_blocks
        flag.store(1, kPublished);
        return;
    }
#ifdef CLEAN
    const bool ready = flag.exchange(2, kRelaxed) == 1;
#else
    flag.store(2, kRelaxed);
    const bool ready = true;
#endif
    __threadfence();
    if (ready) out[1] += out[0];  // expected finding: between_blocks
}
