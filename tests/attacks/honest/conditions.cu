// Selects code by the architecture, by CUDA's version and by its own macros.
#define TWICE 1
#ifndef FACTOR
#define FACTOR 2.0f
#endif
__global__ void kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 700
    if (i < n) out[i] = FACTOR * x[i];
#endif
}

extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
#if TWICE && CUDART_VERSION >= 12000 && __CUDACC_VER_MAJOR__ >= 12  // threadIdx in a comment is no use in a condition
    if (n > 0) kernel<<<(n + 63) / 64, 64, 0, stream>>>(x, out, n);
#endif
}
