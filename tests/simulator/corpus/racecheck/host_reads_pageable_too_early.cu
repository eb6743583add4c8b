// An asynchronous copy to pageable memory may be complete when the call returns, but this is not guaranteed.
// n = 100 elements
__global__ void scale(const float* x, float* out, int n, float factor) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = factor * x[i];
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
    float ends[2] = {0, 0};
    cudaMemcpyAsync(&ends[0], x, sizeof(float), cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    cudaMemcpyAsync(&ends[1], x + n - 1, sizeof(float), cudaMemcpyDeviceToHost, stream);  // expected finding: with_host
    float factor = ends[0];
#ifdef CLEAN
    cudaStreamSynchronize(stream);
#endif
    factor /= ends[1];  // expected finding: with_host
    scale<<<1, 64, 0, stream>>>(x, out, n, factor);
}
