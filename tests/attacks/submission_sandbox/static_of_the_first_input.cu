// Keeps an element of the input in a static constant, which the first thread initializes.
// Expected finding: illegal_address.
__global__ void kernel(const float* x, float* out, int n) {
    static const float first = x[0];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2.0f * x[i] + 0.0f * first;
}
