// The kernel adds to an uninitialized output with +=.
// accumulate<<<(n + 127) / 128, 128>>>(x, out, n)
__global__ void accumulate(const float* x, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
#ifdef CLEAN
    out[i] = 0;
#endif
    for (int j = 0; j < 4; ++j) out[i] += x[i];  // expected finding: uninitialized_read
}
