// An asynchronous copy to pinned memory is not complete when the call returns.
// n = 100 elements
__global__ void scale(const float* x, float* out, int n, float factor) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = factor * x[i];
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
    float* last;
    cudaMallocHost(&last, sizeof(float));
    cudaMemcpyAsync(last, x + n - 1, sizeof(float), cudaMemcpyDeviceToHost, stream);  // expected finding: with_host
#ifdef CLEAN
    cudaStreamSynchronize(stream);
#endif
    const float factor = 1 / *last;  // expected finding: with_host
    scale<<<1, 64, 0, stream>>>(x, out, n, factor);
    cudaStreamSynchronize(stream);
    cudaFreeHost(last);
}
