// The kernel casts const away and writes to an input.
// scale<<<(n + 127) / 128, 128>>>(x, out, n)
__global__ void scale(const float* x, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
#ifdef CLEAN
    const float doubled = 2 * x[i];
#else
    const_cast<float*>(x)[i] *= 2;  // expected finding: write_to_const
    const float doubled = x[i];
#endif
    out[i] = doubled;
}
