// The loop condition is <= instead of <.
#include <cuda_runtime.h>

__global__ void sum(const float* x, float* out, int n) {
    float total = 0;
#ifdef CLEAN
    for (int i = 0; i < n; ++i) {
#else
    for (int i = 0; i <= n; ++i) {
#endif
        total += x[i];  // expected finding: out_of_bounds
    }
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = total;
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) { sum<<<1, 32, 0, stream>>>(x, out, n); }
