// A kernel's first declaration has the __launch_bounds__, and the launch has more threads.
// Expected finding: refused.
__global__ void __launch_bounds__(32) kernel(const float* x, float* out, int n);
__global__ void kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2.0f * x[i];
}
