// The source of an asynchronous copy is overwritten while the copy may still read it.
// n = 100 elements
__constant__ float factor;

__global__ void scale(const float* x, float* out, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = factor * x[i];
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
    float* host;
    cudaMallocHost(&host, sizeof(float));
    *host = 1;
    cudaMemcpyToSymbolAsync(factor, host, sizeof(float), 0, cudaMemcpyHostToDevice, stream);  // expected finding: with_host
#ifdef CLEAN
    cudaStreamSynchronize(stream);
#endif
    *host = 2;  // expected finding: with_host
    scale<<<1, 64, 0, stream>>>(x, out, n);
    cudaMemcpyToSymbolAsync(factor, host, sizeof(float), 0, cudaMemcpyHostToDevice, stream);
    scale<<<1, 64, 0, stream>>>(x, out, n);
    cudaStreamSynchronize(stream);
    cudaFreeHost(host);
}
