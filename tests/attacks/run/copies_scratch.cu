// Copies its input to device scratch memory, and from there to the host, where it computes.
#include <vector>

__global__ void carry(const float* from, float* to, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = from[i];
}

extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    if (n == 0) return;
    std::vector<float> host(n);
    float* scratch;
    cudaMalloc(&scratch, sizeof(float) * n);
    cudaMemcpy(scratch, x, sizeof(float) * n, cudaMemcpyDeviceToDevice);
    cudaMemcpy(host.data(), scratch, sizeof(float) * n, cudaMemcpyDefault);
    for (float& value : host) value *= 2.0f;
    cudaMemcpy(scratch, host.data(), sizeof(float) * n, cudaMemcpyHostToDevice);
    carry<<<(n + 63) / 64, 64, 0, stream>>>(scratch, out, n);
    cudaFree(scratch);
}
