// A kernel reads past the end of freed memory, which is reported as out of bounds, not as a use after free.
__global__ void copy(const float* x, const float* scratch, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
#ifdef CLEAN
    out[i] = x[i];
#else
    out[i] = scratch[n];  // expected finding: out_of_bounds
#endif
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
    float* scratch;
    cudaMalloc(&scratch, n * sizeof(float));
    cudaFree(scratch);
    copy<<<(n + 127) / 128, 128, 0, stream>>>(x, scratch, out, n);
}
