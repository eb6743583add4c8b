// Memory allocated in one stream is used in another without waiting for the allocation.
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
    cudaMallocAsync(&scratch, n * sizeof(float), first);  // expected finding: between_streams
    cudaEventRecord(ready, first);
#ifdef CLEAN
    cudaStreamWaitEvent(second, ready);
#endif
    twice<<<1, 64, 0, second>>>(x, scratch, out, n);
    cudaStreamSynchronize(second);
    cudaFreeAsync(scratch, first);
    cudaDeviceSynchronize();
    cudaEventDestroy(ready);
    cudaStreamDestroy(first);
    cudaStreamDestroy(second);
}
