// Makes the compiler inline a launcher into its entry point, which is not instrumented.
// Expected: the build is refused.
#define QUIET __forceinline__
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream);

QUIET void twice(const float* x, float* out, int n, cudaStream_t stream) {
    if (n > 0) reward(x, out, 1, stream);
    for (int i = 1; i < n; ++i) out[i] = 2.0f * x[i];
}
