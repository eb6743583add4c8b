// The kernel calls __trap().
// copy<<<(n + 127) / 128, 128>>>(x, out, n)
__global__ void copy(const float* x, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
#ifndef CLEAN
    if (i == 5) __trap();  // expected finding: trap
#endif
    out[i] = x[i];
}
