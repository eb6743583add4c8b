// Uses #line with a path that starts in the simulator's headers, so that a finding quotes another file.
__global__ void past(const float* x, float* out, int n) {
#line 1 "@COURSE@/grader//simulator/include/../../../../../../../../../../../..@OTHER@"
    if (threadIdx.x < n + 1) out[threadIdx.x] = threadIdx.x < n ? 2.0f * x[threadIdx.x] : 1.0f;
}

extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    if (n > 0) past<<<1, 256, 0, stream>>>(x, out, n);
}
