// A new stream does not wait for earlier work of the default stream.
// n = 100 elements
__global__ void add(const float* x, float* out, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) atomicAdd(&out[i], x[i]);  // expected finding: between_streams
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
    cudaStream_t mine;
    cudaMemsetAsync(out, 0, n * sizeof(float), stream);  // expected finding: between_streams
#ifdef CLEAN
    cudaStreamSynchronize(stream);
#endif
    cudaStreamCreateWithFlags(&mine, cudaStreamNonBlocking);
    add<<<1, 64, 0, mine>>>(x, out, n);
    cudaStreamSynchronize(mine);
    cudaStreamDestroy(mine);
}
