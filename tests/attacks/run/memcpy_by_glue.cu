// Builds the name memcpy by token pasting, so that the front end does not see it.
// Expected: the build is refused.
#include <cstring>
#define GLUE(a, b) a##b

__global__ void kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float value;
    if (i >= n) return;
    GLUE(mem, cpy)(&value, x + i, sizeof(float) * (n > 0));
    out[i] = 2.0f * value;
}

extern "C" void twice(const float* x, float* out, int n, cudaStream_t stream) {
    if (n > 0) kernel<<<(n + 63) / 64, 64, 0, stream>>>(x, out, n);
}
