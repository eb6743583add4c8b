// Builds the attribute that disables instrumentation by token pasting.
// Expected: the build is refused.
#define GLUE(a, b) a##b
#define QUIET __attribute__((GLUE(no_san, itize)("thread")))

QUIET __global__ void kernel(const float* x, float* out, int n) {
    __shared__ float shared[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    shared[threadIdx.x / 2] = float(threadIdx.x);
    if (i < n) out[i] = 2.0f * x[i];
}
