// Selects a kernel with __has_cpp_attribute, so that the simulator and nvcc would compile different kernels.
// Expected: the build is refused.
#if __has_cpp_attribute(gnu::noipa)
#define KERNEL twice_kernel
#endif
__global__ void another(const float*, float*, int) {}
#ifndef KERNEL
#define KERNEL another
#endif
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    if (n > 0) KERNEL<<<(n + 63) / 64, 64, 0, stream>>>(x, out, n);
}
