// A kernel is launched with more threads than its __launch_bounds__ allow, which a GPU refuses.
// Expected finding: refused.
template <int Threads>
__global__ void __launch_bounds__(Threads / 2) kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2.0f * x[i];
}
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    if (n > 0) kernel<64><<<(n + 63) / 64, 64, 0, stream>>>(x, out, n);
}
