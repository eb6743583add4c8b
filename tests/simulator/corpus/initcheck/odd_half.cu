// An odd number of halves is processed in pairs, so the last one is not written.
// n = 1001, copy<<<(n + 127) / 128, 128>>>(x, out, n)
// expected finding: output_not_written
#include <cuda_fp16.h>

__global__ void copy(const __half* x, __half* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n / 2) reinterpret_cast<__half2*>(out)[i] = reinterpret_cast<const __half2*>(x)[i];
#ifdef CLEAN
    if (i == 0 && n % 2) out[n - 1] = x[n - 1];
#endif
}
