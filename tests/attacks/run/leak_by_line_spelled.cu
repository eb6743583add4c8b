// Uses an alternative spelling of #line so that a finding quotes another file.
// Expected: the build is refused.
__global__ void past(const float* x, float* out, int n) {
%:/* the lines of another file */ line 1 "@OTHER@"
    if (threadIdx.x < n + 1) out[threadIdx.x] = threadIdx.x < n ? 2.0f * x[threadIdx.x] : 1.0f;
}

extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    if (n > 0) past<<<1, 256, 0, stream>>>(x, out, n);
}
