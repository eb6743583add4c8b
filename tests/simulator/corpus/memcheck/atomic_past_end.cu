// A histogram has no bin for 1.0, so the atomic addition for 1.0 goes past the end of the histogram.
// clear<<<1, 128>>>(out, n); histogram<<<(n + 127) / 128, 128>>>(x, out, n)
__global__ void clear(float* out, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = 0;
}

__global__ void histogram(const float* x, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int bin = i;
#ifndef CLEAN
    if (i == n - 1) bin = n;
#endif
    atomicAdd(&out[bin], x[i]);  // expected finding: out_of_bounds
}
