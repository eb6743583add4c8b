// The second stream waits for an event before it is recorded, so it does not wait.
// n = 100 elements
__global__ void twice(const float* x, float* out, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = 2 * x[i];
}
__global__ void add_one(float* out, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] += 1;
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
    cudaStream_t other;
    cudaEvent_t done;
    cudaStreamCreate(&other);
    cudaEventCreateWithFlags(&done, cudaEventDisableTiming);
    twice<<<1, 64, 0, stream>>>(x, out, n);
#ifdef CLEAN
    cudaEventRecord(done, stream);
#endif
    cudaStreamWaitEvent(other, done, 0);  // expected finding: event_not_recorded
#ifndef CLEAN
    cudaEventRecord(done, stream);
#endif
    add_one<<<1, 64, 0, other>>>(out, n);
    cudaStreamSynchronize(other);
    cudaEventDestroy(done);
    cudaStreamDestroy(other);
}
