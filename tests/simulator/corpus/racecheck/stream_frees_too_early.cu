// Memory is freed in a stream that does not wait for the stream that still uses it.
// n = 100 elements
__global__ void twice(const float* x, float* scratch, float* out, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        scratch[i] = 2 * x[i];  // expected finding: between_streams
        out[i] = scratch[i];
    }
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t) {
    cudaStream_t first, second;
    cudaEvent_t ready;
    float* scratch;
    cudaStreamCreate(&first);
    cudaStreamCreate(&second);
    cudaEventCreate(&ready);
    cudaMallocAsync(&scratch, n * sizeof(float), first);
    cudaEventRecord(ready, first);
    cudaStreamWaitEvent(second, ready);
    twice<<<1, 64, 0, second>>>(x, scratch, out, n);
    cudaEventRecord(ready, second);
#ifdef CLEAN
    cudaStreamWaitEvent(first, ready);
#endif
    cudaFreeAsync(scratch, first);  // expected finding: between_streams
    cudaDeviceSynchronize();
    cudaEventDestroy(ready);
    cudaStreamDestroy(first);
    cudaStreamDestroy(second);
}
