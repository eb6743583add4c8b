// The launch has more than 1024 threads per block, so CUDA refuses it and nothing runs.
// n = 2048 elements
__global__ void copy(const float* x, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i];
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
#ifdef CLEAN
    copy<<<(n + 1023) / 1024, 1024, 0, stream>>>(x, out, n);
#else
    copy<<<1, n, 0, stream>>>(x, out, n);  // expected finding: refused
#endif
}
