// The kernel accesses four elements at a time, but the length is not a multiple of four.
// n = 1002, copy<<<(n + 511) / 512, 128>>>(x, out, n)
__global__ void copy(const float* x, float* out, int n) {
    const int i = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= n) return;
#ifdef CLEAN
    if (i + 4 > n) {
        for (int j = i; j < n; ++j) out[j] = x[j];
        return;
    }
#endif
    const float4 four = *reinterpret_cast<const float4*>(x + i);  // expected finding: out_of_bounds
    *reinterpret_cast<float4*>(out + i) = four;                   // expected finding: out_of_bounds
}
