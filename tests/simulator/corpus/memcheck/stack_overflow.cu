// A device function calls itself without end.
// clang-format off
__device__ float sum(const float* x, int n) { return n == 0 ? *x : *x + sum(x, n - 1) * sum(x, n / 2); }  // expected finding: stack_overflow
// clang-format on

__global__ void recurse(const float* x, float* out, int n, int levels) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = sum(x + i, levels);
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
#ifdef CLEAN
    recurse<<<(n + 127) / 128, 128, 0, stream>>>(x, out, n, 5);
#else
    recurse<<<(n + 127) / 128, 128, 0, stream>>>(x, out, n, -1);
#endif
}
