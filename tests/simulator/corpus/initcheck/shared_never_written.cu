// Reads a shared array that was never written.
// add<<<(n + 127) / 128, 128>>>(x, out, n)
__global__ void add(const float* x, float* out, int n) {
    __shared__ float bias[128];
    const int i = blockIdx.x * 128 + threadIdx.x;
#ifdef CLEAN
    bias[threadIdx.x] = 1;
    __syncthreads();
#endif
    if (i < n) out[i] = x[i] + bias[threadIdx.x];  // expected finding: uninitialized_read
}
