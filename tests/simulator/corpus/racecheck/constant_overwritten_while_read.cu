// A copy in another stream overwrites a __constant__ table that a kernel reads.
// n = 64 elements
__constant__ float table[4];

__global__ void scale(const float* x, float* out) {
    out[threadIdx.x] = table[threadIdx.x % 4] * x[threadIdx.x];  // expected finding: between_streams
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t) {
    const float first[4] = {1, 2, 3, 4}, second[4] = {5, 6, 7, 8};
    cudaStream_t kernels, copies;
    cudaStreamCreateWithFlags(&kernels, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&copies, cudaStreamNonBlocking);
    cudaMemcpyToSymbolAsync(table, first, sizeof first, 0, cudaMemcpyHostToDevice, kernels);  // expected finding: between_streams
    scale<<<1, n, 0, kernels>>>(x, out);
#ifdef CLEAN
    cudaStreamSynchronize(kernels);
#endif
    cudaMemcpyToSymbolAsync(table, second, sizeof second, 0, cudaMemcpyHostToDevice, copies);  // expected finding: between_streams
    cudaDeviceSynchronize();
    cudaStreamDestroy(kernels);
    cudaStreamDestroy(copies);
}
