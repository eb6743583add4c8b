// A block writes a weight, and the other blocks read it in a loop. The loop does not wait until the weight is there.
// n = 20 elements
#include <cuda_runtime.h>

__device__ volatile float weight;

__global__ void clear() { weight = 0; }

__global__ void sum(const float* x, float* out, int n) {
    if (blockIdx.x == 0) {
        weight = 1 + x[0] * x[0];  // expected finding: between_blocks
        out[0] = 0;
        return;
    }
#ifdef CLEAN
    float seen = 0;
    do {
        seen = weight;
    } while (seen == 0);
#else
    float seen = 0, left = 2;
    do {
        seen = weight;  // expected finding: between_blocks
    } while (--left > 0);
#endif
    out[blockIdx.x] = seen > 0 ? x[blockIdx.x] : 0;
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
    clear<<<1, 1, 0, stream>>>();
    sum<<<n, 1, 0, stream>>>(x, out, n);
}
