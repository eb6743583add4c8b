// SwiGLU gate, version by version: out = silu(gate) * up, with silu(x) = x / (1 + exp(-x)).
//
// Version 1: silu written as x * exp(x) / (1 + exp(x)), which is mathematically the same.
// Version 2: silu written so that an overflow gives the right limit.
// Version 3: silu and the multiplication as two kernels, as separate operators do it.
#include <cuda_runtime.h>

// ---------------------------------------------------------------------------------------------------------------------
// The kernels. gate, up, activated and out are (n).

__global__ void swiglu_kernel1(const float* gate, const float* up, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = gate[i] * expf(gate[i]) / (1.0f + expf(gate[i])) * up[i];
}

__global__ void swiglu_kernel2(const float* gate, const float* up, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = gate[i] / (1.0f + expf(-gate[i])) * up[i];
}

__global__ void silu_kernel(const float* gate, float* activated, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) activated[i] = gate[i] / (1.0f + expf(-gate[i]));
}

__global__ void multiply_kernel(const float* activated, const float* up, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = activated[i] * up[i];
}

// ---------------------------------------------------------------------------------------------------------------------
// The launchers.

extern "C" void swiglu_1(const float* gate, const float* up, float* out, int n, cudaStream_t stream) {
    swiglu_kernel1<<<(n + 255) / 256, 256, 0, stream>>>(gate, up, out, n);
}

extern "C" void swiglu_2(const float* gate, const float* up, float* out, int n, cudaStream_t stream) {
    swiglu_kernel2<<<(n + 255) / 256, 256, 0, stream>>>(gate, up, out, n);
}

extern "C" void swiglu_3(const float* gate, const float* up, float* activated, float* out, int n, cudaStream_t stream) {
    silu_kernel<<<(n + 255) / 256, 256, 0, stream>>>(gate, activated, n);
    multiply_kernel<<<(n + 255) / 256, 256, 0, stream>>>(activated, up, out, n);
}
