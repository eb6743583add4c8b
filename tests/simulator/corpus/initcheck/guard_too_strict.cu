// The guard excludes the last element.
// expected finding: output_not_written
// copy<<<(n + 127) / 128, 128>>>(x, out, n)
__global__ void copy(const float* x, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef CLEAN
    if (i < n) out[i] = x[i];
#else
    if (i < n - 1) out[i] = x[i];
#endif
}
