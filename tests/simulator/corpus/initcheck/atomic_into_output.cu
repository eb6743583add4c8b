// The kernel adds to an uninitialized output with atomicAdd.
__global__ void scatter(const float* x, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&out[n - 1 - i], x[i]);  // expected finding: uninitialized_read
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
#ifdef CLEAN
    cudaMemsetAsync(out, 0, n * sizeof(float), stream);
#endif
    scatter<<<(n + 127) / 128, 128, 0, stream>>>(x, out, n);
}
