// A kernel reads past the end of its input by strnlen.
// Expected finding: out_of_bounds.
#include <string.h>
__host__ __device__ float read(const float* x, int i) {
    size_t length = 0;
    for (int k = 0; k < (i >= 0 ? 20 : 1); ++k) length += strnlen(reinterpret_cast<const char*>(x + k), 2);
    return float(length);
}
__global__ void kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    out[i] = 2.0f * x[i] + 0.0f * read(x + i, i);
}
