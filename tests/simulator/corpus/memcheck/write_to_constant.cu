// The kernel writes a table in constant memory, which kernels must not write.
// scale<<<(n + 127) / 128, 128>>>(x, out, n)
#ifdef CLEAN
__device__ float table[16];
#else
__constant__ float table[16];
#endif

__global__ void scale(const float* x, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float* factors = table;
    if (threadIdx.x == 0) factors[blockIdx.x] = 2;  // expected finding: write_to_constant
    __syncthreads();
    if (i < n) out[i] = factors[blockIdx.x] * x[i];
}
