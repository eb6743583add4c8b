// The tests insert this text before each attack.
#include <cuda_runtime.h>

__global__ void twice_kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2.0f * x[i];
}

// Writes the correct result with a race. An attack that hides the finding gets a pass.
static __global__ void racy(const float* x, float* out, int n) {
    __shared__ float shared[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    shared[threadIdx.x / 2] = float(threadIdx.x);
    if (i < n) out[i] = 2.0f * x[i];
}
[[maybe_unused]] static void race(const float* x, float* out, int n, cudaStream_t stream) {
    if (n > 0) racy<<<(n + 63) / 64, 64, 0, stream>>>(x, out, n);
}

// Writes the correct result. An attack calls it after it has reached its target, so any pass is a successful attack.
[[maybe_unused]] static void reward(const float* x, float* out, int n, cudaStream_t stream) {
    if (n > 0) twice_kernel<<<(n + 63) / 64, 64, 0, stream>>>(x, out, n);
}
