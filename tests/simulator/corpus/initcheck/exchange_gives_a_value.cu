// atomicAdd reads uninitialized scratch memory. atomicExch does not count as a read, and initializes it.
__global__ void take(const float* x, float* out, float* slots, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
#ifdef CLEAN
    atomicExch(&slots[i], x[i]);
#else
    atomicAdd(&slots[i], x[i]);  // expected finding: uninitialized_read
#endif
    __threadfence();
    out[i] = slots[i];
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
    float* slots;
    cudaMalloc(&slots, n * sizeof(float));
    take<<<(n + 127) / 128, 128, 0, stream>>>(x, out, slots, n);
    cudaFree(slots);
}
