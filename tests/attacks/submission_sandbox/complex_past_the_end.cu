// A kernel reads past the end of its input. The value that it reads has the compiler's built-in type _Complex float.
// Expected finding: out_of_bounds.
__device__ float read(const float* x, int) { return __imag__ * reinterpret_cast<const volatile _Complex float*>(x); }
__global__ void kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    out[i] = 2.0f * x[i];
    if (i == n - 1 && read(x + i, i) == 1e30f) out[i] = 0.0f;
}
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    if (n > 0) kernel<<<(n + 63) / 64, 64, 0, stream>>>(x, out, n);
}
