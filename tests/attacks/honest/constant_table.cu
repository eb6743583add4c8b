// Reads a small table in constant memory.
__constant__ float factors[2] = {2.0f, 2.0f};
__global__ void kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = factors[i % 2] * x[i];
}
