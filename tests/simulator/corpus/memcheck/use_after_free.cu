// The scratch memory is freed before the launch that reads it.
__global__ void fill(const float* x, float* scratch, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) scratch[i] = 2 * x[i];
}

__global__ void read(const float* scratch, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = scratch[i];  // expected finding: use_after_free
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
    float* scratch = nullptr;
    cudaMalloc(&scratch, n * sizeof(float));
    fill<<<(n + 127) / 128, 128, 0, stream>>>(x, scratch, n);
#ifndef CLEAN
    cudaFree(scratch);
#endif
    read<<<(n + 127) / 128, 128, 0, stream>>>(scratch, out, n);
#ifdef CLEAN
    cudaFree(scratch);
#endif
}
