// The launcher copies a device variable to the host and computes the output there.
// Expected finding: host_copies.
__device__ float kept[4096];
static float on_host[4096];
__global__ void keep(const float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) kept[i] = x[i];
}
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    if (n <= 0) return;
    keep<<<(n + 63) / 64, 64, 0, stream>>>(x, n);
    cudaStreamSynchronize(stream);
    cudaMemcpyFromSymbol(on_host, kept, n * sizeof(float));
    for (int i = 0; i < n; ++i) on_host[i] *= 2.0f;
    cudaMemcpy(out, on_host, n * sizeof(float), cudaMemcpyHostToDevice);
}
