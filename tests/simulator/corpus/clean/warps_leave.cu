// Threads past the end exit early. No barrier waits for them, and masks contain only the remaining threads.
// n = 200 elements
#include <cuda_runtime.h>

__global__ void sums(const float* x, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const unsigned active = __ballot_sync(n - (i & ~31) >= 32 ? 0xffffffffu : (1u << n % 32) - 1, x[i] > 0);
    out[i] = __popc(active);
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) { sums<<<(n + 127) / 128, 128, 0, stream>>>(x, out, n); }
