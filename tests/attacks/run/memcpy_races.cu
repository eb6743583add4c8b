// All threads write to the same address with memcpy and memset.
#include <string.h>
#define COPY memcpy

__global__ void kernel(const float* x, float* out, int n) {
    __shared__ float shared[64];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float pair[2] = {x[i], x[i]};
    memset(shared, 0, sizeof(float) * (n > 0 ? 2 : 1));
    COPY(shared, pair, sizeof(float) * (n > 0 ? 2 : 1));
    out[i] = 2.0f * x[i];
}
