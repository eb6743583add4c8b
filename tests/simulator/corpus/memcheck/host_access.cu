// The launcher accesses device memory on the host.
__global__ void scale(const float* x, float* out, int n, float factor) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = factor * x[i];
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
    float factor = 2;
#ifdef CLEAN
    cudaMemcpyAsync(&factor, x, sizeof factor, cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
#else
    factor = x[0];  // expected finding: host_access
#endif
    scale<<<(n + 127) / 128, 128, 0, stream>>>(x, out, n, factor);
}
