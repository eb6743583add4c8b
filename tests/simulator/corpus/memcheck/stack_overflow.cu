// A recursion whose end is never reached.
#include <cuda_runtime.h>

__device__ float sum_from(const float* x, int i, int left) {
    return left == 0 ? x[i] : x[i] + sum_from(x, i, left - 1) * sum_from(x, i, left / 2);  // finding: stack_overflow
}

__global__ void recurse(const float* x, float* out, int n, int levels) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = sum_from(x, i, levels);
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
#ifdef CLEAN
    recurse<<<(n + 127) / 128, 128, 0, stream>>>(x, out, n, 5);
#else
    recurse<<<(n + 127) / 128, 128, 0, stream>>>(x, out, n, -1);
#endif
}
