// The kernel reads the destination of a copy in another stream without waiting for it.
// n = 100 elements
__global__ void twice(const float* x, float* out, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = 2 * x[i];  // expected finding: between_streams
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t) {
    cudaStream_t copies, kernels;
    float* scratch;
    cudaStreamCreate(&copies);
    cudaStreamCreate(&kernels);
    cudaMalloc(&scratch, n * sizeof(float));
    cudaMemcpyAsync(scratch, x, n * sizeof(float), cudaMemcpyDeviceToDevice, copies);  // expected finding: between_streams
#ifdef CLEAN
    cudaStreamSynchronize(copies);
#endif
    twice<<<1, 64, 0, kernels>>>(scratch, out, n);
    cudaDeviceSynchronize();
    cudaFree(scratch);
    cudaStreamDestroy(copies);
    cudaStreamDestroy(kernels);
}
