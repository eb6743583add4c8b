// Shows nvcc another kernel, because __syncthreads() changes __COUNTER__ in the simulator only.
// Expected: the build is refused.
__global__ void kernel(const float* x, float* out, int n) {
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#if __COUNTER__ == 0
    if (i > n) out[i] = 0;
#else
    if (i < n) out[i] = 2.0f * x[i];
#endif
}
