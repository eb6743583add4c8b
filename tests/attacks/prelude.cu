// Stands before every file of these folders when it is compiled.
#include <cuda_runtime.h>

__global__ void twice_kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2.0f * x[i];
}

// The right answer: what an attack writes once it got what it wanted. So an attack that passes has succeeded.
[[maybe_unused]] static void reward(const float* x, float* out, int n, cudaStream_t stream) {
    if (n > 0) twice_kernel<<<(n + 63) / 64, 64, 0, stream>>>(x, out, n);
}
