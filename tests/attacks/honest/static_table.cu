// Reads a small static table of constants.
__global__ void kernel(const float* x, float* out, int n) {
    static const float factors[16] = {2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2};
    static const char* const names[] = {"twice", "zero"};
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = names[i % 1][0] == 't' ? factors[i % 16] * x[i] : 0.0f;
}
