// Every second element of the scratch memory is written, but all are read.
__global__ void fill(const float* x, float* scratch, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef CLEAN
    if (i < n) scratch[i] = x[i];
#else
    if (2 * i < n) scratch[2 * i] = x[2 * i];
#endif
}

__global__ void read(const float* scratch, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = scratch[i];  // expected finding: uninitialized_read
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
    float* scratch = nullptr;
    cudaMallocAsync(&scratch, n * sizeof(float), stream);
    fill<<<(n + 127) / 128, 128, 0, stream>>>(x, scratch, n);
    read<<<(n + 127) / 128, 128, 0, stream>>>(scratch, out, n);
    cudaFreeAsync(scratch, stream);
}
