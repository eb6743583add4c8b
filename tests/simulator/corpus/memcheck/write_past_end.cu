// Reads are guarded, but the write is not.
// scale<<<(n + 127) / 128, 128>>>(x, out, n)
__global__ void scale(const float* x, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float value = i < n ? x[i] : 0.0f;
#ifdef CLEAN
    if (i < n)
#endif
        out[i] = value;  // expected finding: out_of_bounds
}
