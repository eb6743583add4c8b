// A memset writes all but the last two bytes, so only half of the last word is initialized.
// n = 64 elements
__global__ void add(const float* x, float* out, const int* zeros, int n) {
    const int i = threadIdx.x;
    out[i] = x[i] + zeros[i];  // expected finding: uninitialized_read
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
    int* zeros;
    cudaMallocAsync(&zeros, n * sizeof(int), stream);
#ifdef CLEAN
    cudaMemsetAsync(zeros, 0, n * sizeof(int) - 2, stream);
    cudaMemsetAsync(reinterpret_cast<char*>(zeros) + n * sizeof(int) - 2, 0, 2, stream);
#else
    cudaMemsetAsync(zeros, 0, n * sizeof(int) - 2, stream);
#endif
    add<<<1, n, 0, stream>>>(x, out, zeros, n);
    cudaFreeAsync(zeros, stream);
}
