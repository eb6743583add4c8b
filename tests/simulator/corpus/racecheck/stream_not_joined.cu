// The caller continues in its stream, which does not wait for the launcher's other stream.
// n = 100 elements
__global__ void twice(const float* x, float* out, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = 2 * x[i];  // expected finding: between_streams
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
    cudaStream_t mine;
    cudaEvent_t done;
    cudaStreamCreateWithFlags(&mine, cudaStreamNonBlocking);
    cudaEventCreate(&done);
    twice<<<1, 64, 0, mine>>>(x, out, n);
    cudaEventRecord(done, mine);
#ifdef CLEAN
    cudaStreamWaitEvent(stream, done);
#endif
    cudaEventDestroy(done);
    cudaStreamDestroy(mine);
}
