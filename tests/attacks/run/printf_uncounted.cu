// Reads the input many times by printf of a string in device memory.
__global__ void kernel(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2.0f * x[i];
    if (i == 0 && n > 300)
        for (int k = 0; k < 100; ++k) printf("%.2047s", reinterpret_cast<const char*>(x));
}
