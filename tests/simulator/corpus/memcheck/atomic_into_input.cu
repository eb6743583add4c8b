// The kernel adds atomically to an input, which the launcher takes as a pointer to const.
// add_one<<<(n + 127) / 128, 128>>>(x, out, n)
__global__ void add_one(const float* x, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
#ifdef CLEAN
    out[i] = x[i] + 1;
#else
    out[i] = atomicAdd(const_cast<float*>(&x[i]), 1.0f) + 1;  // expected finding: write_to_const
#endif
}
