// A kernel stores the input in constant memory, where reads are not counted.
// Expected finding: write_to_constant.
__constant__ float table[4096];
__global__ void fill(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i];
}
__global__ void kernel(float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2.0f * table[i];
}
extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    if (n <= 0) return;
    void* place = nullptr;
    cudaGetSymbolAddress(&place, table);
    fill<<<(n + 63) / 64, 64, 0, stream>>>(x, static_cast<float*>(place), n);
    kernel<<<(n + 63) / 64, 64, 0, stream>>>(out, n);
}
