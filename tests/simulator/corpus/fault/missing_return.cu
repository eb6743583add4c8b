// A device function reaches its closing brace without return.
#include <cuda_runtime.h>

#ifdef CLEAN
__device__ float store(float* to, float x) { return *to = x; }
#else
__device__ float store(float* to, float x) { *to = x; }  // expected finding: missing_return
#endif

__global__ void copy(const float* x, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && i != 5) out[i] = x[i];
    if (i == 5) store(out + i, x[i]);
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) { copy<<<(n + 127) / 128, 128, 0, stream>>>(x, out, n); }
