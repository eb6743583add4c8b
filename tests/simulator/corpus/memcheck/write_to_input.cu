// The kernel casts const away and writes to an input.
#include <cuda_runtime.h>

__global__ void scale(const float* x, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
#ifdef CLEAN
    const float doubled = 2 * x[i];
#else
    const_cast<float*>(x)[i] *= 2;  // expected finding: write_to_const
    const float doubled = x[i];
#endif
    out[i] = doubled;
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) { scale<<<(n + 127) / 128, 128, 0, stream>>>(x, out, n); }
