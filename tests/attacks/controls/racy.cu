// The result is correct, but the kernel has a race.
__global__ void racy(const float* x, float* out, int n) {
    __shared__ float shared[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    shared[threadIdx.x / 2] = float(threadIdx.x);
    if (i < n) out[i] = 2.0f * x[i];
}

extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    if (n > 0) racy<<<(n + 63) / 64, 64, 0, stream>>>(x, out, n);
}
