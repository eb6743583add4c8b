// Kernels in two streams read memory. A kernel in a third stream writes it, but waits for only one of them.
// n = 100 elements
__global__ void sum_left(const float* x, const float* middle, float* out, int n) {
    for (int i = threadIdx.x; i < n / 2; i += blockDim.x) out[i] = x[i] + middle[i];  // expected finding: between_streams
}
__global__ void sum_right(const float* x, const float* middle, float* out, int n) {
    for (int i = n / 2 + threadIdx.x; i < n; i += blockDim.x) out[i] = x[i] + middle[i - n / 2];
}
__global__ void clear(float* middle, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) middle[i] = 0;  // expected finding: between_streams
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t) {
    cudaStream_t streams[3];
    cudaEvent_t done[2];
    float* middle;
    cudaMalloc(&middle, n * sizeof(float));
    cudaMemcpy(middle, x, n * sizeof(float), cudaMemcpyDeviceToDevice);
    cudaDeviceSynchronize();
    for (int i = 0; i < 3; ++i) cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking);
    for (int i = 0; i < 2; ++i) cudaEventCreate(&done[i]);
    sum_left<<<1, 64, 0, streams[0]>>>(x, middle, out, n);
    cudaEventRecord(done[0], streams[0]);
    sum_right<<<1, 64, 0, streams[1]>>>(x, middle, out, n);
    cudaEventRecord(done[1], streams[1]);
#ifdef CLEAN
    cudaStreamWaitEvent(streams[2], done[0]);
#endif
    cudaStreamWaitEvent(streams[2], done[1]);
    clear<<<1, 64, 0, streams[2]>>>(middle, n);
    cudaDeviceSynchronize();
    for (int i = 0; i < 3; ++i) cudaStreamDestroy(streams[i]);
    for (int i = 0; i < 2; ++i) cudaEventDestroy(done[i]);
    cudaFree(middle);
}
