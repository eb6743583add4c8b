// An attribute has the bounds of __launch_bounds__, and the launch has more threads.
// Expected: the build is refused.
__global__ void __attribute__((launch_bounds(32))) kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2.0f * x[i];
}
