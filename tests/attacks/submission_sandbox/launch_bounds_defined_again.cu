// A macro with the __launch_bounds__ of a kernel is defined again after the kernel, with more threads.
// Expected finding: refused.
#define BOUNDS(threads) __launch_bounds__(threads)
__global__ void BOUNDS(32) kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2.0f * x[i];
}
#undef BOUNDS
#define BOUNDS(threads) __launch_bounds__(2 * (threads))
__global__ void BOUNDS(32) another(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 3.0f * x[i];
}
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    if (n <= 0) return;
    another<<<(n + 63) / 64, 64, 0, stream>>>(x, out, n);
    kernel<<<(n + 63) / 64, 64, 0, stream>>>(x, out, n);
}
