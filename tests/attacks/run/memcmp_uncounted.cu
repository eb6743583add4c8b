// Reads the input many times by memcmp of 4 bytes, which the compiler expands.
__global__ void kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v = x[i];
    int same = 0;
#pragma unroll 1
    for (int k = 1; k < 40; ++k) same += __builtin_memcmp(&x[(i + k * 8) % n], &v, 4) == 0;
    out[i] = 2.0f * v + (same > 1000 ? 1.0f : 0.0f);
}
