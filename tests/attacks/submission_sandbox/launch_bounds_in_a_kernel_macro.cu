// A macro contains a kernel with __launch_bounds__, which is launched with more threads.
// Expected finding: refused.
#define KERNEL(name, threads)                                                            \
    __global__ void __launch_bounds__(threads) name(const float* x, float* out, int n) { \
        int i = blockIdx.x * blockDim.x + threadIdx.x;                                   \
        if (i < n) out[i] = 2.0f * x[i];                                                 \
    }
KERNEL(kernel, 32)
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    if (n > 0) kernel<<<(n + 63) / 64, 64, 0, stream>>>(x, out, n);
}
