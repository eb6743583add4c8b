// A kernel reads past the end of its input by a vector type of the compiler.
// Expected finding: out_of_bounds.
typedef float Vector __attribute__((vector_size(64), aligned(4), may_alias));
__device__ float read(const float* x, int) {
    Vector values = *reinterpret_cast<const Vector*>(x);
    return values[15];
}
__global__ void kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    out[i] = 2.0f * x[i];
    if (i == n - 1 && read(x + i, i) == 1e30f) out[i] = 0.0f;
}
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    if (n > 0) kernel<<<(n + 63) / 64, 64, 0, stream>>>(x, out, n);
}
