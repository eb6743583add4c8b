// Passes a table of the host to the kernel, where reads of it were not counted.
// Expected finding: illegal_address.
float factors[64];
__global__ void kernel(const float* x, const float* table, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = table[i % 64] * x[i];
}
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    for (float& factor : factors) factor = 2.0f;
    if (n > 0) kernel<<<(n + 63) / 64, 64, 0, stream>>>(x, factors, out, n);
}
