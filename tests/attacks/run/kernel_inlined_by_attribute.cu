// Makes the compiler inline a kernel into its launch code, by an attribute.
// Expected: the build is refused.
[[gnu::always_inline]] inline __global__ void kernel(const float* x, float* out, int n) {
    __shared__ float shared[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    shared[0] = float(threadIdx.x);
    if (i < n) out[i] = 2.0f * x[i];
}
