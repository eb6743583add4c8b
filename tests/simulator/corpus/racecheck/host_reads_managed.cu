// The host reads managed memory that a kernel may still write.
// n = 100 elements
__global__ void add_up(const float* x, float* total, int n) {
    if (threadIdx.x == 0) {
        float sum = 0;
        for (int i = 0; i < n; ++i) sum += x[i];
        *total = sum;  // expected finding: with_host
    }
}
__global__ void scale(const float* x, float* out, int n, float factor) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = factor * x[i];
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
    float* total;
    cudaMallocManaged(&total, sizeof(float));
    add_up<<<1, 64, 0, stream>>>(x, total, n);
#ifdef CLEAN
    cudaDeviceSynchronize();
#endif
    const float factor = 1 / *total;  // expected finding: with_host
    scale<<<1, 64, 0, stream>>>(x, out, n, factor);
    cudaFree(total);
}
