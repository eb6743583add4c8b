// The grid has n / 128 blocks, rounded down, so the remaining elements are not written.
// expected finding: output_not_written
__global__ void copy(const float* x, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i];
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
#ifdef CLEAN
    copy<<<(n + 127) / 128, 128, 0, stream>>>(x, out, n);
#else
    copy<<<n / 128, 128, 0, stream>>>(x, out, n);
#endif
}
