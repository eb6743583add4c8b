// Reads past the end of its input with a memcpy whose length is known only at run time.
#include <cstring>

__global__ void kernel(const float* x, float* out, int n) {
    float piece[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    memcpy(piece, x + n - 1, sizeof(float) * (n % 2 + 2));
    out[i] = 2.0f * x[i] + 0.0f * piece[0];
}
