// Macros and another declaration contain __launch_bounds__. No launch has more threads.
#define BOUNDS __launch_bounds__(64)
#define BOUNDS_OF(threads) __launch_bounds__(threads)
#define KERNEL(name, factor)                                         \
    __global__ void BOUNDS name(const float* x, float* out, int n) { \
        int i = blockIdx.x * blockDim.x + threadIdx.x;               \
        if (i < n) out[i] = factor * x[i];                           \
    }
KERNEL(three_times, 3.0f)
__global__ void BOUNDS_OF(64) half_of_it(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 0.5f * x[i];
}
__global__ void __launch_bounds__(64, 2) kernel(const float* x, float* out, int n);
__global__ void kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2.0f * x[i];
}
