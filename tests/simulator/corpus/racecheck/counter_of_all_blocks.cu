// Every block adds its sum to the same element without atomics.
// n = 1000 elements
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

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
    clear<<<1, 128, 0, stream>>>(out, n);
    sum<<<(n + 31) / 32, 32, 0, stream>>>(x, out, n);
}
