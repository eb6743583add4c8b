// A kernel reads past the end of its input when it passes a structure by value to a function that is not inlined.
// Expected finding: out_of_bounds.
struct Row {
    float values[20];
};
__device__ __noinline__ float last(Row row, int depth) { return depth ? last(row, depth - 1) : row.values[19]; }
__device__ float read(const float* x, int i) { return last(*reinterpret_cast<const Row*>(x), i < 0); }
__global__ void kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    out[i] = 2.0f * x[i];
    if (i == n - 1 && read(x + i, i) == 1e30f) out[i] = 0.0f;
}
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    if (n > 0) kernel<<<(n + 63) / 64, 64, 0, stream>>>(x, out, n);
}
