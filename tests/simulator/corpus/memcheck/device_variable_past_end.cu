// An array in device memory has 4 counters, and the kernel uses a fifth one.
// count<<<(n + 127) / 128, 128>>>(x, out, n)
__device__ __align__(64) int counts[4];

__global__ void count(const float* x, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
#ifdef CLEAN
    const int kind = i % 4;
#else
    const int kind = i % 5;
#endif
    int* counter = counts + kind;
    out[i] = x[i] + *counter;  // expected finding: out_of_bounds
}
