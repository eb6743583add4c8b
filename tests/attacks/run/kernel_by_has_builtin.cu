// __has_builtin selects a kernel.
// Expected: the build is refused.
#if __has_builtin(__builtin_ia32_pause)
#define KERNEL twice_kernel
#endif
__global__ void another(const float*, float*, int) {}
#ifndef KERNEL
#define KERNEL another
#endif
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    if (n > 0) KERNEL<<<(n + 63) / 64, 64, 0, stream>>>(x, out, n);
}
