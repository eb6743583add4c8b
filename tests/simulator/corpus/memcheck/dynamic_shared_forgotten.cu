// The launch requests no dynamic shared memory.
__global__ void reverse(const float* x, float* out, int n) {
    extern __shared__ float tile[];
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = i < n ? x[i] : 0.0f;  // expected finding: out_of_bounds
    __syncthreads();
    if (i < n) out[i] = tile[blockDim.x - 1 - threadIdx.x];  // expected finding: out_of_bounds
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
#ifdef CLEAN
    reverse<<<(n + 127) / 128, 128, 128 * sizeof(float), stream>>>(x, out, n);
#else
    reverse<<<(n + 127) / 128, 128>>>(x, out, n);
#endif
}
