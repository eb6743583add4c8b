// Accesses memory with the compiler's atomic builtins, which the checks do not count.
// Expected: the build is refused.
__global__ void kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int bits = __atomic_load_n(reinterpret_cast<const int*>(x) + i, __ATOMIC_RELAXED);
    out[i] = 2.0f * __int_as_float(bits);
}
