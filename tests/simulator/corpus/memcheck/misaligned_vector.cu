// The address of a float4 must be a multiple of 16, which the second element's is not.
// shift<<<(n + 511) / 512, 128>>>(x, out, n)
__global__ void shift(const float* x, float* out, int n) {
    const int i = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    if (i + 4 >= n) {
        for (int j = i; j < n; ++j) out[j] = x[j];
        return;
    }
#ifdef CLEAN
    const float4 four = *reinterpret_cast<const float4*>(x + i);
#else
    const float4 four = *reinterpret_cast<const float4*>(x + i + 1);  // expected finding: misaligned
#endif
    *reinterpret_cast<float4*>(out + i) = four;
}
