// Reads its input 100 times with memcpy, in case the simulator counts only one read.
#include <cstring>

__global__ void kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float pair[2], sum = 0.0f;
    for (int k = 0; k < 100; ++k) {
        std::memcpy(pair, x + i, sizeof(float) * (n > k ? 1 : 2));
        sum += pair[0] * 0.02f;
    }
    out[i] = sum;
}
