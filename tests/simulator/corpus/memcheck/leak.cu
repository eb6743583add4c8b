// Each call allocates scratch memory and does not free it.
__global__ void copy(const float* x, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i];
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
    float* scratch = nullptr;
    cudaMallocAsync(&scratch, n * sizeof(float), stream);  // expected finding: leak
    copy<<<(n + 127) / 128, 128, 0, stream>>>(x, scratch, n);
    copy<<<(n + 127) / 128, 128, 0, stream>>>(scratch, out, n);
#ifdef CLEAN
    cudaFreeAsync(scratch, stream);
#endif
}
