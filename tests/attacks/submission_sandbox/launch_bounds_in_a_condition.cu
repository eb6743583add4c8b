// A macro with two definitions contains __launch_bounds__, and the launch has more threads.
// Expected finding: refused.
#if __CUDA_ARCH__ >= 800 || !defined(__CUDA_ARCH__)
#define BOUNDS __launch_bounds__(32)
#else
#define BOUNDS
#endif
__global__ void BOUNDS kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2.0f * x[i];
}
