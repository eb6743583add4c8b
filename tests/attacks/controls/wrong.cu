// The results are slightly wrong.
__global__ void wrong(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2.01f * x[i];
}

extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    if (n > 0) wrong<<<(n + 63) / 64, 64, 0, stream>>>(x, out, n);
}
