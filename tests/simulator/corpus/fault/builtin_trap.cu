// The kernel calls the compiler's __builtin_trap().
// copy<<<(n + 127) / 128, 128>>>(x, out, n)
__device__ float positive(float value) {
#ifndef CLEAN
    if (value < 0) __builtin_trap();  // expected finding: trap
#else
    if (value < 0) value = -value;
#endif
    return value;
}

__global__ void copy(const float* x, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = positive(x[i] - (i == 5 ? 1000 : -1000));
}
