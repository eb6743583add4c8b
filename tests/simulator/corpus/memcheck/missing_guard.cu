// The last block has more threads than remaining elements, and there is no guard.
// scale<<<(n + 255) / 256, 256>>>(x, out, n)
__global__ void scale(const float* x, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef CLEAN
    if (i >= n) return;
#endif
    out[i] = 2 * x[i];  // expected finding: out_of_bounds
}
