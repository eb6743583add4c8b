// Each thread reads its left neighbor, but the first element has none.
// difference<<<(n + 127) / 128, 128>>>(x, out, n)
__global__ void difference(const float* x, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
#ifdef CLEAN
    const float left = i > 0 ? x[i - 1] : 0.0f;
#else
    const float left = x[i - 1];  // expected finding: out_of_bounds
#endif
    out[i] = x[i] - left;
}
