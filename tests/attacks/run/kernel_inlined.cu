// Makes the compiler inline a kernel into its launch code, which is not instrumented.
// Expected: the build is refused.
#define QUIET __forceinline__

template <int N>
QUIET __global__ void racy(const float* x, float* out, int n) {
    __shared__ float shared[N];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    shared[0] = float(threadIdx.x);
    if (i < n) out[i] = 2.0f * x[i];
}

extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    if (n > 0) racy<64><<<(n + 63) / 64, 64, 0, stream>>>(x, out, n);
}
