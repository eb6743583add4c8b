// The second kernel runs in another stream and does not wait for the first one's output.
// n = 100 elements
__global__ void twice(const float* x, float* out, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = 2 * x[i];  // expected finding: between_streams
}
__global__ void add_one(float* out, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] += 1;  // expected finding: between_streams
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
    cudaStream_t first, second;
    cudaEvent_t done;
    cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&done, cudaEventDisableTiming);
    twice<<<1, 64, 0, first>>>(x, out, n);
    cudaEventRecord(done, first);
#ifdef CLEAN
    cudaStreamWaitEvent(second, done, 0);
#endif
    add_one<<<1, 64, 0, second>>>(out, n);
    cudaEventRecord(done, second);
    cudaStreamWaitEvent(stream, done, 0);
    cudaEventDestroy(done);
    cudaStreamDestroy(first);
    cudaStreamDestroy(second);
}
