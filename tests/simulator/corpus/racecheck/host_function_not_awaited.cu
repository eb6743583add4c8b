// The output of a host function in a stream is read without synchronization.
// n = 100 elements
static void halve(void* data) {
    float* factor = static_cast<float*>(data);
    *factor = 0.5f;  // expected finding: with_host
}

__global__ void scale(const float* x, float* out, int n, float factor) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = factor * x[i];
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
    float* factor;
    cudaMallocHost(&factor, sizeof(float));
    cudaLaunchHostFunc(stream, halve, factor);
#ifdef CLEAN
    cudaStreamSynchronize(stream);
#endif
    scale<<<1, 64, 0, stream>>>(x, out, n, *factor);  // expected finding: with_host
    cudaStreamSynchronize(stream);
    cudaFreeHost(factor);
}
