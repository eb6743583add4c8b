// Counters in shared memory are not initialized.
// histogram<<<(n + 127) / 128, 128>>>(x, out, n)
__global__ void histogram(const float* x, float* out, int n) {
    __shared__ int bins[32];
#ifdef CLEAN
    if (threadIdx.x < 32) bins[threadIdx.x] = 0;
    __syncthreads();
#endif
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&bins[i % 32], x[i] > 0 ? 1 : 2);  // expected finding: uninitialized_read
    __syncthreads();
    if (i < n) out[i] = bins[i % 32];
}
