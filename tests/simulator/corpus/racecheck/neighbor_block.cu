// A block reads what the previous block writes in the same launch.
__global__ void first(const float* x, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    out[i] = x[i];  // expected finding: between_blocks
#ifndef CLEAN
    if (threadIdx.x == 0 && i > 0) out[i] = x[i] + out[i - 1];  // expected finding: between_blocks
#endif
}

__global__ void second(const float* x, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && threadIdx.x == 0 && i > 0) out[i] = x[i] + x[i - 1];
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
    first<<<(n + 127) / 128, 128, 0, stream>>>(x, out, n);
#ifdef CLEAN
    second<<<(n + 127) / 128, 128, 0, stream>>>(x, out, n);
#endif
}
