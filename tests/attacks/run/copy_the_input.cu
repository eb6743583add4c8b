// Returns the input as the output.
__global__ void fill(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i];
}

extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    if (n > 0) fill<<<(n + 63) / 64, 64, 0, stream>>>(x, out, n);
}
