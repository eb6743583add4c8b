// A kernel in a stream created with cudaStreamNonBlocking reads what the default stream writes. Unlike other streams,
// such a stream does not wait for the default stream.
// n = 100 elements
__global__ void twice(const float* x, float* out, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = 2 * x[i];  // expected finding: between_streams
}
__global__ void add_one(float* out, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] += 1;  // expected finding: between_streams
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t) {
    cudaStream_t other;
#ifdef CLEAN
    cudaStreamCreate(&other);
#else
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
#endif
    twice<<<1, 64>>>(x, out, n);
    add_one<<<1, 64, 0, other>>>(out, n);
    cudaDeviceSynchronize();
    cudaStreamDestroy(other);
}
