// The result is correct, but the kernel is 100x slower than necessary.
__global__ void slow(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.0f;
    for (int k = 0; k < 100; ++k) sum += i < n ? x[i] / 50.0f : 0.0f;
    if (i < n) out[i] = 2.0f * x[i] + 0.0f * sum;
}

extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    if (n > 0) slow<<<(n + 63) / 64, 64, 0, stream>>>(x, out, n);
}
