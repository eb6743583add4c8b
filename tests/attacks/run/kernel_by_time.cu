// The time of the compilation, __TIME__, selects the factor that the kernel multiplies by.
// Expected: the build is refused.
constexpr float kFactor = __TIME__[0] < '3' ? 2.0f : 0.0f;
__global__ void kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = kFactor * x[i];
}
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    if (n > 0) kernel<<<(n + 63) / 64, 64, 0, stream>>>(x, out, n);
}
