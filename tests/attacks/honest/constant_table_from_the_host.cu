// Fills a table in constant memory from the host, by name and by address.
__constant__ float factors[2];
__global__ void kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = factors[i % 2] * x[i];
}
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    const float two = 2.0f;
    cudaMemcpyToSymbol(factors, &two, sizeof two);
    void* table = nullptr;
    cudaGetSymbolAddress(&table, factors);
    cudaMemcpy(static_cast<float*>(table) + 1, &two, sizeof two, cudaMemcpyHostToDevice);
    if (n > 0) kernel<<<(n + 63) / 64, 64, 0, stream>>>(x, out, n);
}
