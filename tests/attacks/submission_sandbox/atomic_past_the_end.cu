// A kernel reads past the end of its input with a std::atomic load.
// Expected finding: out_of_bounds.
#include <atomic>
__host__ __device__ inline float read(const float* x) {
    return reinterpret_cast<const std::atomic<float>*>(x)->load(std::memory_order_relaxed);
}
__global__ void kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2.0f * x[i];
    if (i == 0 && read(x + n) == 1e30f) out[i] = 0.0f;
}
