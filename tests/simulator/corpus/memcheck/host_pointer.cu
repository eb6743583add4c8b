// The kernel gets the address of a host variable.
__global__ void add(const float* x, const float* amount, float* out, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i] + *amount;  // expected finding: illegal_address
}

extern "C" void run(const float* x, float* out, int n, cudaStream_t stream) {
    float amount = 1;
#ifdef CLEAN
    float* device_amount = nullptr;
    cudaMallocAsync(&device_amount, sizeof amount, stream);
    cudaMemcpyAsync(device_amount, &amount, sizeof amount, cudaMemcpyHostToDevice, stream);
    add<<<(n + 127) / 128, 128, 0, stream>>>(x, device_amount, out, n);
    cudaFreeAsync(device_amount, stream);
#else
    add<<<(n + 127) / 128, 128, 0, stream>>>(x, &amount, out, n);
#endif
}
