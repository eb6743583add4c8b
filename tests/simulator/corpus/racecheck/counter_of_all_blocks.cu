// Every block adds its sum to the same element without atomics.
// n = 1000, clear<<<1, 128>>>(out, n); sum<<<(n + 31) / 32, 32>>>(x, out, n)
__global__ void clear(float* out, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = 0;
}

__global__ void sum(const float* x, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    float value = i < n ? x[i] : 0.0f;
    for (int step = 16; step > 0; step /= 2) value += __shfl_down_sync(0xffffffffu, value, step);
    if (threadIdx.x == 0) {
#ifdef CLEAN
        atomicAdd(&out[0], value);
#else
        out[0] += value;  // expected finding: between_blocks
#endif
    }
}
