// One kernel copies the input to pinned memory, the host computes there, and another kernel copies the result out.
__global__ void carry(const float* from, float* to, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = from[i];
}

extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    if (n == 0) return;
    float* shared;
    cudaMallocHost(&shared, sizeof(float) * n);
    carry<<<(n + 63) / 64, 64, 0, stream>>>(x, shared, n);
    cudaStreamSynchronize(stream);
    for (int i = 0; i < n; ++i) shared[i] *= 2.0f;
    carry<<<(n + 63) / 64, 64, 0, stream>>>(shared, out, n);
    cudaStreamSynchronize(stream);
    cudaFreeHost(shared);
}
