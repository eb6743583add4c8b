// Sums are accumulated before the memset in another stream has finished.
// n = 100 elements
__global__ void add(const float* x, float* out, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) atomicAdd(&out[i], x[i]);  // expected finding: between_streams
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t) {
    cudaStream_t fills, kernels;
    cudaEvent_t filled;
    cudaStreamCreate(&fills);
    cudaStreamCreate(&kernels);
    cudaEventCreate(&filled);
    cudaMemsetAsync(out, 0, n * sizeof(float), fills);  // expected finding: between_streams
    cudaEventRecord(filled, fills);
#ifdef CLEAN
    while (cudaEventQuery(filled) == cudaErrorNotReady) {
    }
#else
    cudaEventQuery(filled);
#endif
    add<<<1, 64, 0, kernels>>>(x, out, n);
    cudaDeviceSynchronize();
    cudaEventDestroy(filled);
    cudaStreamDestroy(fills);
    cudaStreamDestroy(kernels);
}
