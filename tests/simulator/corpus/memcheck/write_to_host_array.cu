// A kernel gets the address of a host array and writes to it.
float on_host[16384];

__global__ void twice(const float* x, float* out, float* copy, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    out[i] = 2 * x[i];
    copy[i] = out[i];  // expected finding: illegal_address
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
    float* copy = on_host + 8192;
#ifdef CLEAN
    cudaMalloc(&copy, n * sizeof(float));
#endif
    twice<<<(n + 127) / 128, 128, 0, stream>>>(x, out, copy, n);
#ifdef CLEAN
    cudaFree(copy);
#endif
}
