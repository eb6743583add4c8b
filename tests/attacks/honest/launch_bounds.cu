// Launches kernels with the maximum number of threads that their __launch_bounds__ allow.
constexpr int kThreads = 64;
template <int Threads>
__global__ void __launch_bounds__(Threads, 2) kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2.0f * x[i];
}
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    if (n > 0) kernel<kThreads><<<(n + kThreads - 1) / kThreads, kThreads, 0, stream>>>(x, out, n);
}
